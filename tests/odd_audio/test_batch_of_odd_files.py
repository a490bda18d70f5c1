"""A batch of good and bad files: the good ones are measured, each bad one is a row that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.running import SCRIPTED
from tests.odd_audio.corpus import GOOD, HERTZ, ONSET_S, SECONDS
from tests.odd_audio.refused import BAD
from tests.pipeline import made_turns
from voicebench.audio.names import printable
from voicebench.audio.samples import EXTENSIONS, find_samples
from voicebench.cli.batch import status_of
from voicebench.errors import ExitStatus
from voicebench.pipeline import session
from voicebench.plan.config import load_config
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome

RATE = 16_000
_WHOLE = [
    case
    for case in GOOD
    if case.seconds == SECONDS and case.slack_s < 0.5 and Path(case.name).suffix in EXTENSIONS
]
MEASURED = [*_WHOLE[:30], *_WHOLE[-40:]]
"""70 recordings of the corpus: whole ones of a second, which a folder is searched for."""
_NAMED_ALONE = ("gone.wav", "folder.wav", "unreadable.wav")
"""Of no use in a folder: not there, no file, or read by the superuser."""
REFUSED = [case for case in BAD if case.name not in _NAMED_ALONE][:30]


def _bad(folder: Path) -> list[str]:
    """30 files that hold no sound; their names as they may be told."""
    names = []
    for case in REFUSED:
        case.write(folder / case.name)
        names.append(printable(case.name))
    return names


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
        spectrum = np.abs(np.fft.rfft(clip[RATE // 4 : RATE // 2].astype(float), 1 << 18))
        assert abs(np.argmax(spectrum) * RATE / (1 << 18) - HERTZ) < HERTZ / 100
        assert abs(np.argmax(np.abs(clip.astype(int)) > 3_000) / RATE - ONSET_S) < 0.06
        assert abs(len(clip) / RATE - SECONDS) < 0.1
        return made_turns.turn()


async def test_seventy_good_files_are_measured_and_thirty_bad_ones_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 70 good ones, of the corpus's codings, rates and kinds, come at their speed; 30 rows name the bad
    ones; the status is that of failed turns."""
    assert len(MEASURED) == 70
    for case in MEASURED:
        case.write(tmp_path / case.name)
    bad = _bad(tmp_path)
    assert len(bad) == 30
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
    assert len({row.sample for row in good}) == 70
    refused = [row for row in rows if row.outcome is Outcome.FAILED]
    assert len(refused) == 30
    for name in bad:
        assert any(name in (row.reason or "") for row in refused), name
    assert status_of(told.records) is ExitStatus.TURNS_FAILED
    assert status_of(good) is ExitStatus.DONE
