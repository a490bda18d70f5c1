"""faster-whisper on a made-up network: the library's own windows, fallback and time stamps, known results."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tokenizers
from faster_whisper import WhisperModel
from faster_whisper.feature_extractor import FeatureExtractor
from faster_whisper.utils import get_logger

WORDS = "what is the capital of france yes tell me more about it please now".split()  # noqa: SIM905
SPECIAL = (
    *("endoftext", "startoftranscript", "en", "de", "translate", "transcribe"),
    *("startoflm", "startofprev", "nospeech", "notimestamps"),
)
_VOCABULARY = [*WORDS, "[unk]", *(f"<|{name}|>" for name in SPECIAL)]
STAMP = len(_VOCABULARY)
"""The token of the time stamp 0.00; each further one is 20 ms later."""


def tokens_of(text: str) -> list[int]:
    """The tokens of words that the vocabulary has."""
    return [WORDS.index(word) for word in text.split()]


Reply = tuple[list[int], float, float]
"""Tokens, their mean log probability, and the probability that there is no speech."""


class MadeNetwork:
    """Stands for ctranslate2's Whisper: `replies` gives what it says at a temperature. It keeps count."""

    device = "cpu"
    device_index = (0,)

    def __init__(self, replies: Callable[[float], Reply], multilingual: bool) -> None:
        self.is_multilingual = multilingual
        self.temperatures: list[float] = []
        self.most_tokens: list[int] = []
        """What each attempt was allowed to give."""
        self.on_attempt: Callable[[], None] = lambda: None
        self._replies = replies

    def encode(self, features: object, to_cpu: bool) -> object:
        """Something that is only handed on."""
        return features

    def detect_language(self, encoded: object) -> list[list[tuple[str, float]]]:
        """German, probably."""
        return [[("<|de|>", 0.83), ("<|en|>", 0.12)]]

    def generate(self, encoded: object, prompts: list[list[int]], **options: Any) -> list[SimpleNamespace]:
        """One attempt, which gives as much as it may."""
        temperature = options.get("sampling_temperature", 0.0)
        self.temperatures.append(temperature)
        self.most_tokens.append(options["max_length"] - len(prompts[0]))
        self.on_attempt()
        said, log_probability, no_speech = self._replies(temperature)
        said = said[: self.most_tokens[-1]]
        return [SimpleNamespace(sequences_ids=[said], scores=[log_probability], no_speech_prob=no_speech)]


class MadeWhisper(WhisperModel):  # type: ignore[misc]  # faster-whisper is not typed
    """The library's own model around a made network. English only unless `multilingual`."""

    def __init__(self, replies: Callable[[float], Reply], multilingual: bool = False) -> None:
        self.logger = get_logger()
        self.model = self.network = MadeNetwork(replies, multilingual)
        words = {word: number for number, word in enumerate(_VOCABULARY)}
        self.hf_tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[unk]"))
        self.feature_extractor = FeatureExtractor()
        self.input_stride = 2
        self.num_samples_per_token = 320
        self.frames_per_second = 100
        self.tokens_per_second = 50
        self.time_precision = 0.02
        self.max_length = 448
