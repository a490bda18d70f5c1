"""A batch of good and bad files: the good ones are measured, each bad one is a row that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.audio.wav_bytes import chunk, fmt, pcm, riff
from tests.cli.running import SCRIPTED
from tests.pipeline import made_turns
from voicebench.audio.samples import find_samples
from voicebench.cli.batch import status_of
from voicebench.errors import ExitStatus
from voicebench.pipeline import session
from voicebench.plan.config import load_config
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome

RATE = 16_000
GOOD = [
    (subtype, rate, channels)
    for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW", "IMA_ADPCM")
    for rate in (8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000)
    for channels in (1, 2)
][:70]


def _tone(rate: int, channels: int) -> np.ndarray:
    """0.1 s of silence, then 0.2 s of 440 Hz; with two channels in anti-phase."""
    time = np.arange(round(0.3 * rate)) / rate
    wave = np.where(time < 0.1, 0.0, 0.5 * np.sin(2 * np.pi * 440 * time))
    return np.stack([wave, -wave][:channels], axis=1)


def _bad(folder: Path) -> None:
    """30 files that hold no sound."""
    wav = riff(fmt(), chunk(b"data", pcm(np.zeros(50, np.float32))))
    contents = [b"", b"RIFF", b"text", wav[:20], wav[:43], b"OggS" + bytes(60), b"fLaC" + bytes(60)]
    contents += [b"\x1a\x45\xdf\xa3" + bytes(50), b"ID3" + bytes(30), riff(fmt(rate=1), wav[36:])]
    for number in range(30):
        (folder / f"bad{number:02d}.wav").write_bytes(contents[number % len(contents)])


class _Told:
    """A reporter that remembers the records."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def turn(self, record: Any) -> None:
        """One record."""
        self.records.append(record)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class _Answers(session.Session):
    """A session whose every turn was answered at once: the files are what is tried here."""

    async def open(self) -> None:
        """There is no pipeline."""
        self.healthy = True

    async def close(self) -> None:
        """There is no pipeline."""

    async def turn(self, clip: Any, *_: Any, **__: Any) -> session.Heard:
        """Check the clip's speed, and answer."""
        spectrum = np.abs(np.fft.rfft(clip.astype(float), 1 << 15))
        assert abs(np.argmax(spectrum) * RATE / (1 << 15) - 440) < 5
        assert abs(np.argmax(np.abs(clip.astype(int)) > 3_000) / RATE - 0.1) < 0.02
        assert abs(len(clip) / RATE - 0.3) < 0.07
        return made_turns.turn()


async def test_seventy_good_files_are_measured_and_thirty_bad_ones_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 70 good ones, of nine codings at eight rates, come at their speed; 30 rows name the bad ones; 4."""
    for number, (subtype, rate, channels) in enumerate(GOOD):
        soundfile.write(tmp_path / f"good{number:02d}.wav", _tone(rate, channels), rate, subtype=subtype)
    _bad(tmp_path)
    config = tmp_path / "scripted.yaml"
    config.write_text(SCRIPTED, "utf-8")
    monkeypatch.setattr(session, "Session", _Answers)
    told = _Told()
    plan = make_plan(load_config(config), find_samples([tmp_path]))
    folder = await run(plan, RunOptions(out=tmp_path / "run"), told)
    rows = folder.turns().records
    assert len(rows) == len(told.records) == 100
    assert folder.info().complete
    good = [row for row in rows if row.outcome is Outcome.COMPLETED]
    assert {row.sample for row in good} == {f"good{number:02d}.wav" for number in range(70)}
    bad = [row for row in rows if row.outcome is Outcome.FAILED]
    assert len(bad) == 30
    assert all(row.sample in (row.reason or "") for row in bad)
    assert status_of(told.records) is ExitStatus.TURNS_FAILED
    assert status_of(good) is ExitStatus.DONE
