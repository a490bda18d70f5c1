"""A conversation whose pipeline breaks: it goes on with another one, whose first turn is marked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.pipeline.driven import scripted
from voicebench.analysis.caveats import WORDS
from voicebench.live import conversation
from voicebench.live.beginning import live_plan
from voicebench.live.screen import LiveScreen
from voicebench.pipeline.record import failed_record
from voicebench.stages.shared import Shared
from voicebench.turns.run_folder import RunFolder


class _Breaks:
    """A session that breaks in its first turn and in its third."""

    made = 0

    def __init__(self, *_: Any) -> None:
        self.healthy, self._turns = True, 0
        type(self).made += 1

    async def open(self) -> None:
        """Nothing is to be opened."""

    async def close(self) -> None:
        """Nothing is to be closed."""

    async def listen(self, *_: Any, **__: Any) -> Any:
        """A turn at once."""
        self._turns += 1
        self.healthy = not (type(self).made == 1 or self._turns == 3)
        return SimpleNamespace(first=self._turns == 1, edge=None, ending="error")


async def test_the_first_turn_of_a_pipeline_built_anew_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fault the next turn, which no warm-up turn went before, carries `cold_pipeline`; no other does,
    and the code has its words."""

    async def there() -> bool:
        return True

    monkeypatch.setattr("voicebench.live.session.LiveSession", _Breaks)
    monkeypatch.setattr(
        conversation._Talk, "_record", lambda self, facts, heard: failed_record(facts, "as it was told")
    )
    card: Any = SimpleNamespace(there=there, returns=True, lost=None, facts={})
    folder = RunFolder.create(tmp_path / "run")
    folder.start([])
    options = conversation.LiveOptions(turns=6)
    with folder.journal() as journal:
        plan = live_plan(scripted(), "made")
        screen = LiveScreen(800.0, plain=True)
        talk = conversation._Talk(plan, folder, Shared(), card, options, screen, journal)
        assert await talk.go_on()
        await talk.close()
    cold = ["cold_pipeline" in one.caveats for one in folder.turns().records]
    assert cold == [False, True, False, False, True, False]
    assert "{count}" in WORDS["cold_pipeline"]
