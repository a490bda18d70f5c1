"""Make the audio samples and their manifest anew. For maintainers: the committed files are the truth.

    python audio_samples/make_samples.py VOICE.onnx [OUT_FOLDER]

VOICE.onnx is the Piper voice en_US-joe-medium (its VOICE.onnx.json beside it); espeak-ng must be installed.
The same voice file and the same versions of the libraries give the same bytes: the noise is seeded, and
Piper's own randomness is seeded for each sample, so that a sample does not depend on those before it.

How a sample is made: the voice speaks the text; the signal is resampled to the file's rate, scaled to peak
0.6, and set down with digital silence around it. Its segments are found there, in the clean signal, by the
rule of `voicebench.audio.presence`. Only then come the condition (noise, level, band) and the encoder.
After encoding the file is decoded again and held against the clean signal by cross-correlation: where a
codec moves the sound, the segments move with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
import soxr
import yaml
from numpy.typing import NDArray
from recipes import JOE, RECIPES, Recipe

from voicebench.audio import presence
from voicebench.audio.decode import decode
from voicebench.audio.pcm import mono

Signal = NDArray[np.float32]

PEAK = 0.6
LEAD_S = 0.4
TAIL_S = 0.5
SOFT_BEFORE_S = 0.05
"""Sound below the threshold that is kept before an utterance and, three times as long, after it."""
FADE_S = 0.01

FORMATS: dict[str, dict[str, str]] = {
    ".wav": {"format": "WAV", "subtype": "PCM_16"},
    ".flac": {"format": "FLAC", "subtype": "PCM_16"},
    ".opus": {"format": "OGG", "subtype": "OPUS"},
    ".mp3": {"format": "MP3", "subtype": "MPEG_LAYER_III"},
}


def level_dbfs(samples: Signal, rate: int) -> float:
    """The RMS in dBFS over those windows of `samples` in which sound is present (the active speech level)."""
    windows = presence.present(samples, rate)
    width = presence.window_samples(rate)
    active = np.repeat(windows, width)[: samples.size]
    return float(10 * np.log10(np.mean(samples[active].astype(np.float64) ** 2)))


def add_noise(clean: Signal, recipe: Recipe) -> Signal:
    """Pink noise under the whole file, 10 dB below the speech, swelling like a room full of talk."""
    random = np.random.default_rng(recipe.seed)
    spectrum = np.fft.rfft(random.standard_normal(clean.size))
    frequencies = np.fft.rfftfreq(clean.size, 1 / recipe.rate)
    spectrum[frequencies < 80] = 0
    spectrum /= np.sqrt(np.maximum(frequencies, 80))
    noise = np.fft.irfft(spectrum, clean.size)
    seconds = np.arange(clean.size) / recipe.rate
    swell = sum(
        np.sin(2 * np.pi * (hertz * seconds + phase))
        for hertz, phase in zip((1.3, 2.9, 4.1), random.random(3), strict=True)
    )
    noise *= 1 + 0.2 * swell
    noise *= presence.amplitude(level_dbfs(clean, recipe.rate) - 10) / np.sqrt(np.mean(noise**2))
    return np.asarray(clean + noise, dtype=np.float32)


def telephone_band(clean: Signal, recipe: Recipe) -> Signal:
    """Only 300-3400 Hz, with slopes of 50 Hz, and the delay of no filter (zero phase)."""
    spectrum = np.fft.rfft(clean)
    frequencies = np.fft.rfftfreq(clean.size, 1 / recipe.rate)
    spectrum *= np.clip((frequencies - 250) / 50, 0, 1) * np.clip((3450 - frequencies) / 50, 0, 1)
    return np.asarray(np.fft.irfft(spectrum, clean.size), dtype=np.float32)


def quiet(clean: Signal, recipe: Recipe) -> Signal:
    """Turned down to an active speech level of -35 dBFS."""
    return np.asarray(clean * presence.amplitude(-35 - level_dbfs(clean, recipe.rate)), dtype=np.float32)


def stereo(clean: Signal, _: Recipe) -> Signal:
    """The voice on the left, and 6 dB lower on the right."""
    return np.stack([clean, clean / 2], axis=1)


def low_noise(clean: Signal, recipe: Recipe) -> Signal:
    """A room without speech: white noise at -72 dBFS."""
    noise = np.random.default_rng(recipe.seed).standard_normal(clean.size)
    return np.asarray(noise * presence.amplitude(-72.0), dtype=np.float32)


CONDITIONS: dict[str, Callable[[Signal, Recipe], Signal]] = {
    "noise": add_noise,
    "telephone": telephone_band,
    "quiet": quiet,
    "stereo": stereo,
    "silence": low_noise,
}
"""What is done to the clean voice; in the other conditions nothing."""


def piper(text: str, model: Path, seed: int, speed: float) -> tuple[Signal, int]:
    """`text` spoken by the Piper voice `model`: samples and rate. Same `seed`, same samples."""
    import onnxruntime
    from piper import PiperVoice, SynthesisConfig
    from piper.config import PiperConfig

    onnxruntime.set_seed(seed)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    config = PiperConfig.from_dict(json.loads(Path(f"{model}.json").read_text("utf-8")))
    voice = PiperVoice(session=session, config=config)
    chunks = list(voice.synthesize(text, SynthesisConfig(length_scale=1 / speed)))
    return np.concatenate([chunk.audio_float_array for chunk in chunks]), chunks[0].sample_rate


def espeak(text: str, variant: str, speed: float) -> tuple[Signal, int]:
    """`text` spoken by espeak-ng's voice `variant`: samples and rate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "voice.wav"
        words_a_minute = str(round(160 * speed))
        subprocess.run(
            ["espeak-ng", "-v", variant, "-s", words_a_minute, "-w", str(path), "--", text], check=True
        )
        samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate


def speak(text: str, recipe: Recipe, model: Path) -> Signal:
    """`text` in the recipe's voice at the recipe's rate and peak 0.6, cut to its sound and soft edges."""
    if recipe.voice == JOE:
        voice, rate = piper(text, model, recipe.seed, recipe.speed)
    else:
        voice, rate = espeak(text, recipe.voice.removeprefix("espeak-ng "), recipe.speed)
    samples: Signal = soxr.resample(voice, rate, recipe.rate, quality="VHQ")
    samples *= PEAK / np.max(np.abs(samples))
    return samples


def place(utterances: list[Signal], recipe: Recipe) -> Signal:
    """Set the utterances down: LEAD_S of silence to the first sound, `pause_s` between, TAIL_S at the end."""
    width = presence.window_samples(recipe.rate)
    before = round(SOFT_BEFORE_S * recipe.rate)
    fade = round(FADE_S * recipe.rate)
    position = round(LEAD_S * recipe.rate / width) * width
    pieces: list[tuple[int, Signal]] = []
    for samples in utterances:
        onset, end = presence.first_onset(samples, recipe.rate), presence.last_end(samples, recipe.rate)
        assert onset is not None
        assert end is not None
        first, last = max(0, onset - before), min(samples.size, end + 3 * before)
        piece = samples[first:last].copy()
        piece[:fade] *= np.linspace(0, 1, fade, dtype=np.float32)
        piece[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
        pieces.append((position - (onset - first), piece))
        position += end - onset
        position += round(recipe.pause_s * recipe.rate / width) * width
    end = position - round(recipe.pause_s * recipe.rate / width) * width
    clean = np.zeros(end + round(TAIL_S * recipe.rate), dtype=np.float32)
    for start, piece in pieces:
        clean[start : start + piece.size] += piece
    return clean


def lag_of(decoded: Signal, clean: Signal) -> int:
    """By how many samples `decoded` lies behind `clean`, by cross-correlation."""
    size = 1 << (decoded.size + clean.size).bit_length()
    product = np.fft.rfft(decoded, size) * np.conj(np.fft.rfft(clean, size))
    correlation = np.fft.irfft(product, size)
    best = int(np.argmax(correlation))
    return best if best < size // 2 else best - size


def verify(path: Path, clean: Signal, found: list[tuple[int, int]], rate: int) -> int:
    """Decode the file again, print how it compares with the clean signal; by how many samples it lags."""
    clip = decode(path)
    assert clip.sample_rate == rate, (path, clip.sample_rate)
    decoded = mono(clip)
    lag = lag_of(decoded, clean) if found else 0
    edges = [
        f"{1000 * (now - before - lag) / rate:+.1f}"
        for segment, clean_segment in zip(presence.segments(decoded, rate), found, strict=False)
        for now, before in zip(segment, clean_segment, strict=True)
    ]
    print(
        f"{path.name:34} {clip.duration_s:6.2f} s {path.stat().st_size:7d} B  lag {lag}  "
        f"frames {clip.frames - clean.size:+d}  edges moved (ms) {' '.join(edges)}"
    )
    return lag


def make(recipe: Recipe, model: Path, folder: Path) -> dict[str, object]:
    """Write the sample's file into `folder` and return its entry for the manifest."""
    if recipe.parts:
        clean = place([speak(part, recipe, model) for part in recipe.parts], recipe)
    else:
        clean = np.zeros(4 * recipe.rate, dtype=np.float32)
    found = presence.segments(clean, recipe.rate)
    assert len(found) == len(recipe.parts), (recipe.id, found)
    change = CONDITIONS.get(recipe.condition)
    path = folder / recipe.file
    how = FORMATS[path.suffix]
    soundfile.write(
        path,
        change(clean, recipe) if change else clean,
        recipe.rate,
        recipe.subtype or how["subtype"],
        format=how["format"],
    )
    lag = verify(path, clean, found, recipe.rate)
    return {
        "id": recipe.id,
        "file": recipe.file,
        "transcript": " ".join(recipe.parts),
        "segments": [
            [round((first + lag) / recipe.rate, 5), round((last + lag) / recipe.rate, 5)]
            for first, last in found
        ],
        "voice": recipe.voice,
        "condition": recipe.condition,
        "answers": list(recipe.answers),
        "language": "en",
    }


HEADER = """\
# Spoken samples, all synthetic; made by make_samples.py, see README.md.
#
# segments: [start, end] of each stretch of speech in seconds from the file's first decoded frame, found in
# the clean voice at peak 0.6 (before level, noise and band changes): from the first to the last 5 ms window
# whose RMS exceeds -45 dBFS; silence of 0.5 s or more separates two segments.
# Lossy files: the file was decoded again with voicebench's own decoder and aligned with the clean signal by
# cross-correlation; where the codec moved the sound, the segments were moved by as many samples.
"""


def main() -> None:
    """Make every sample, then the manifest."""
    model = Path(sys.argv[1])
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    entries = [make(recipe, model, folder) for recipe in RECIPES]
    text = yaml.safe_dump(
        {"version": 1, "samples": entries}, sort_keys=False, allow_unicode=True, default_flow_style=None
    )
    (folder / "manifest.yaml").write_text(HEADER + text, encoding="utf-8")


if __name__ == "__main__":
    main()
