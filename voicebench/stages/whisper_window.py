"""Whisper on a window as long as the speech, instead of always 30 seconds.

The encoder's work grows with the window, and Whisper was trained on 30 s: the result of a shorter one
is judged; where it looks doubtful the full window decides.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
WINDOWS_S = (4.0, 5.0, 6.0, 7.0, 8.0, 10.0)
"""The lengths that are used. Beyond the last the full window makes fewer errors."""
SPARE_S = 2.0
"""So much of the window stays silent behind the speech, for the sake of the words."""
BEAMS = 2
"""With less silence, or one beam, the samples had three word errors of 175 in place of one."""
LEAST_LOG_PROBABILITY = -0.35
"""A mean token log probability below this is doubtful: of 114 cuts of the samples none that was understood
was below it, but for a lone "yes"."""
LEAST_OF_FEW = -0.8
"""The same for a text of fewer than `FEW_WORDS`: a lone "yes" is never very probable."""
FEW_WORDS = 4
MOST_COMPRESSION = 2.2
"""Text that compresses better than this repeats itself."""
MOST_CHARACTERS_A_SECOND = 25.0
"""Nobody speaks faster: more is invented."""
REPETITION_PENALTY = 1.1


@dataclass(frozen=True)
class Decoded:
    """A transcript, or why the short window is not to be trusted (`doubt`, empty where it is)."""

    text: str
    no_speech_prob: float
    doubt: str = ""


def window_for(seconds: float) -> float | None:
    """The shortest window that holds so much audio and silence behind it; None where only the full one
    does."""
    return next((window for window in WINDOWS_S if window >= seconds + SPARE_S), None)


def decode(model: Any, samples: NDArray[np.float32], window_s: float, language: str | None) -> Decoded:
    """Decode 16 kHz mono `samples` with two beams on a window of `window_s` seconds. Blocks.

    The signal is padded with zeros, not the spectrogram: its floor is then that of real silence.
    """
    from faster_whisper.tokenizer import Tokenizer

    padded = np.zeros(round(window_s * RATE), dtype=np.float32)
    padded[: samples.size] = samples
    features = model.feature_extractor(padded, padding=0)
    encoded = model.encode(features)
    tokenizer = Tokenizer(
        model.hf_tokenizer,
        model.model.is_multilingual,
        task="transcribe" if model.model.is_multilingual else None,
        language=language if model.model.is_multilingual else None,
    )
    prompt = model.get_prompt(tokenizer, [], without_timestamps=True)
    seconds = samples.size / RATE
    result = model.model.generate(
        encoded,
        [prompt],
        beam_size=BEAMS,
        repetition_penalty=REPETITION_PENALTY,
        max_length=min(model.max_length, len(prompt) + 16 + round(seconds * 10)),
        return_scores=True,
        return_no_speech_prob=True,
        suppress_blank=True,
        suppress_tokens=[-1],
    )[0]
    tokens = result.sequences_ids[0]
    text = tokenizer.decode([token for token in tokens if token < tokenizer.eot]).strip()
    mean = result.scores[0] * len(tokens) / (len(tokens) + 1)
    return Decoded(text, float(result.no_speech_prob), _doubt(text, mean, seconds))


def _doubt(text: str, mean_log_probability: float, seconds: float) -> str:
    if not text:
        return "empty"
    least = LEAST_OF_FEW if len(text.split()) < FEW_WORDS else LEAST_LOG_PROBABILITY
    if mean_log_probability < least:
        return "improbable"
    data = text.encode()
    if len(data) / len(zlib.compress(data)) > MOST_COMPRESSION:
        return "repetitive"
    if len(text) > MOST_CHARACTERS_A_SECOND * max(seconds, 1.0):
        return "too much text"
    return ""
