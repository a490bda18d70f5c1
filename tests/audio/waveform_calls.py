"""Made calls with known truth: clean voices on two channels, and what a line does to them.

The voices are the project's synthetic samples, or recordings of a person. Truth is the presence rule on the
clean voice at peak 0.6, before any condition is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from voicebench.audio.decode import decode
from voicebench.audio.manifest import load_manifest
from voicebench.audio.presence import first_onset, last_end, present
from voicebench.audio.samples import default_folder
from voicebench.audio.waveform import Conversation, conversation

RATE = 16_000
Sound = NDArray[np.float32]
Condition = Callable[[Sound, Sound, np.random.Generator], tuple[Sound, Sound, int]]
GAPS_S = (-0.4, -0.2, 0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Said:
    """One turn as it was made: the user's end and the agent's onset, in seconds."""

    user_end_s: float
    agent_onset_s: float

    @property
    def gap_ms(self) -> float:
        """The true voice-to-voice latency."""
        return (self.agent_onset_s - self.user_end_s) * 1000


@cache
def voices() -> tuple[Sound, ...]:
    """The project's clean one-segment samples at 16 kHz, peak 0.6."""
    out: list[Sound] = []
    for sample in load_manifest(default_folder()):
        if sample.condition != "clean" or len(sample.segments or ()) != 1:
            continue
        if sample.path.suffix not in (".wav", ".flac"):
            continue
        clip = decode(sample.path)
        sound = clip.samples[:, 0]
        if clip.sample_rate != RATE:
            sound = soxr.resample(sound, clip.sample_rate, RATE, "HQ")
        out.append(np.asarray(sound * (0.6 / np.abs(sound).max()), dtype=np.float32))
    assert len(out) >= 8
    return tuple(out)


RECORDED = Path("/usr/share/sounds/alsa")
"""Where Debian's package alsa-utils puts recordings of a person who says "front left" and the like."""


@cache
def recorded_voices() -> tuple[Sound, ...]:
    """The eight recordings of a person that come with alsa-utils, at 16 kHz, peak 0.6; empty without them.

    Six of them end in a t, which is released 150 to 250 ms after the last of the voice.
    """
    out: list[Sound] = []
    for path in sorted(RECORDED.glob("*_*.wav")):
        clip = decode(path)
        sound = soxr.resample(clip.samples[:, 0], clip.sample_rate, RATE, "HQ")
        out.append(np.asarray(sound * (0.6 / np.abs(sound).max()), dtype=np.float32))
    return tuple(out)


def placed(parts: Sequence[tuple[int, Sound]], size: int) -> Sound:
    """Sounds laid into silence at sample positions."""
    out = np.zeros(size, dtype=np.float32)
    for at, sound in parts:
        out[at : at + sound.size] += sound[: max(0, size - at)]
    return out


def edges(sound: Sound) -> tuple[int, int]:
    """First and last sample of sound by the presence rule."""
    begin, end = first_onset(sound, RATE), last_end(sound, RATE)
    assert begin is not None
    assert end is not None
    return begin, end


def clean_call(
    seed: int, turns: int = 6, spoken: Sequence[Sound] | None = None
) -> tuple[Sound, Sound, list[Said]]:
    """A call of random sentences out of `spoken` (else the project's) with gaps from -400 ms to 3 s."""
    spoken = voices() if spoken is None else spoken
    rng = np.random.default_rng(seed)
    at = float(rng.uniform(0.3, 1.2))
    user: list[tuple[int, Sound]] = []
    agent: list[tuple[int, Sound]] = []
    said: list[Said] = []
    for _ in range(turns):
        question, answer = (spoken[int(i)] for i in rng.integers(0, len(spoken), 2))
        start = round(at * RATE)
        user_end = start + edges(question)[1]
        gap = round((float(rng.choice(GAPS_S)) + float(rng.uniform(-0.02, 0.02))) * RATE)
        onset = user_end + gap
        user.append((start, question))
        agent.append((onset - edges(answer)[0], answer))
        said.append(Said(user_end / RATE, onset / RATE))
        at = max(user_end, onset - edges(answer)[0] + edges(answer)[1]) / RATE + float(rng.uniform(0.5, 1.5))
    size = round((at + 0.5) * RATE)
    return placed(user, size), placed(agent, size), said


def speech_level(sound: Sound) -> float:
    """The RMS over the windows that hold sound."""
    rows = sound[: sound.size // 80 * 80].reshape(-1, 80)
    return float(np.sqrt(np.mean(rows[present(sound, RATE)[: rows.shape[0]]] ** 2)))


def noise(kind: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Noise of RMS 1: `white`, `pink`, or `babble` of eight voices."""
    if kind == "babble":
        out = np.zeros(size)
        for _ in range(8):
            at = -int(rng.integers(0, 20_000))
            while at < size:
                voice = voices()[int(rng.integers(0, len(voices())))]
                part = voice[max(0, -at) :][: size - max(at, 0)]
                out[max(at, 0) : max(at, 0) + part.size] += part
                at += voice.size - int(rng.integers(1000, 5000))
    else:
        out = rng.standard_normal(size)
        if kind == "pink":
            spectrum = np.fft.rfft(out)
            out = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(spectrum.size), 1)), size)
    return np.asarray(out / np.sqrt(np.mean(out**2)), dtype=np.float64)


def with_noise(kind: str, snr_db: float, both: bool = False) -> Condition:
    """Noise on the user's channel, or on both, `snr_db` below the speech."""

    def noisy(sound: Sound, rng: np.random.Generator) -> Sound:
        level = speech_level(sound) * 10 ** (-snr_db / 20)
        return np.asarray(sound + noise(kind, sound.size, rng) * level, dtype=np.float32)

    def apply(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
        return noisy(user, rng), noisy(agent, rng) if both else agent, RATE

    return apply


def clean(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """Nothing is done."""
    return user, agent, RATE


def quiet_agent(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """The agent at a peak of -35 dBFS."""
    return user, np.asarray(agent * (10 ** (-35 / 20) / np.abs(agent).max()), dtype=np.float32), RATE


def mu_law(sound: Sound) -> Sound:
    """Over a telephone line: 8 kHz, mu-law."""
    file = BytesIO()
    narrow = np.clip(soxr.resample(sound, RATE, 8000, "HQ"), -1, 1)
    soundfile.write(file, narrow, 8000, format="WAV", subtype="ULAW")
    file.seek(0)
    return np.asarray(soundfile.read(file, dtype="float32")[0], dtype=np.float32)


def telephone(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """Both sides over a telephone line."""
    return mu_law(user), mu_law(agent), 8000


def late(sound: Sound, samples: int) -> Sound:
    """`sound` a number of samples later."""
    return np.concatenate([np.zeros(samples, np.float32), sound[: sound.size - samples]])


def echo(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """The agent on the user's channel, 20 dB weaker and 5 to 200 ms later."""
    heard = late(agent, int(rng.uniform(0.005, 0.2) * RATE))
    return np.asarray(user + heard * np.float32(0.1), dtype=np.float32), agent, RATE


def room_echo(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """The agent overdriven, through a room, on the user's channel."""
    impulse = rng.standard_normal(4000) * np.exp(-np.arange(4000) / 480) * 0.15
    impulse[0] = 1
    heard = np.convolve(np.tanh(4 * agent) / 4, impulse)[: agent.size]
    heard *= np.sqrt(np.mean(agent**2) / np.mean(heard**2)) * 0.1
    return user + late(np.asarray(heard, dtype=np.float32), 1200), agent, RATE


def cross_talk(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """Each side on the other's channel, 20 dB weaker."""
    return user + agent * np.float32(0.1), agent + user * np.float32(0.1), RATE


def hum(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
    """Mains hum with harmonics on both channels, and a constant offset."""
    at = np.arange(user.size) / RATE
    tones = sum(
        level * np.sin(2 * np.pi * 50.03 * k * at + k)
        for k, level in ((1, 0.02), (2, 0.01), (3, 0.008), (5, 0.003))
    )
    offset = np.asarray(tones + 0.05, dtype=np.float32)
    return user + offset, agent + offset, RATE


@dataclass(frozen=True)
class Score:
    """How far measured gaps are from the true ones."""

    errors_ms: NDArray[np.float64]
    within_uncertainty: float
    missed: int
    invented: int
    uncertain: int
    certain_errors_ms: NDArray[np.float64]
    """The errors of the turns that were called certain."""

    @property
    def p95(self) -> float:
        """The 95th percentile of the absolute error."""
        return float(np.percentile(self.errors_ms, 95))


def score(
    condition: Condition, calls: int = 5, first_seed: int = 0, spoken: Sequence[Sound] | None = None
) -> Score:
    """Measure calls under a condition. A turn is matched by its user's end, within 600 ms."""
    errors: list[float] = []
    trusted: list[float] = []
    covered = missed = invented = uncertain = 0
    for seed in range(first_seed, first_seed + calls):
        user, agent, said = clean_call(seed, spoken=spoken)
        found = conversation(*condition(user, agent, np.random.default_rng(seed + 999)))
        left = list(found.turns)
        for truth in said:
            near = [
                t
                for t in left
                if abs(t.user_end_s - truth.user_end_s) < 0.6 and t.voice_to_voice_ms is not None
            ]
            if not near:
                missed += 1
                continue
            turn = min(near, key=lambda t: abs(t.user_end_s - truth.user_end_s))
            left.remove(turn)
            assert turn.voice_to_voice_ms is not None
            error = abs(turn.voice_to_voice_ms - truth.gap_ms)
            errors.append(error)
            covered += error <= turn.uncertainty_ms
            uncertain += not turn.certain
            if turn.certain:
                trusted.append(error)
        invented += len(left)
    return Score(
        np.array(errors), covered / max(1, len(errors)), missed, invented, uncertain, np.array(trusted)
    )


def measured(condition: Condition, seed: int) -> Conversation:
    """One call under a condition, measured."""
    user, agent, _ = clean_call(seed)
    return conversation(*condition(user, agent, np.random.default_rng(seed + 999)))
