"""What a conversation makes its pipelines of, and how it goes on where one breaks."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.pipeline.driven import scripted
from voicebench.analysis.caveats import WORDS
from voicebench.live import conversation
from voicebench.live.beginning import live_plan
from voicebench.live.card import Level
from voicebench.live.screen import LiveScreen
from voicebench.pipeline.build import Stage
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


class _Loaded(_Breaks):
    """A session that is open when the models are there."""

    loaded: threading.Event

    async def open(self) -> None:
        """Wait for them."""
        assert await asyncio.to_thread(type(self).loaded.wait, 20)


def _card() -> Any:
    """A card without devices."""

    async def done() -> Level:
        return Level(None, None)

    async def there() -> bool:
        return True

    device = SimpleNamespace(stream=SimpleNamespace(device=SimpleNamespace(name="none")))
    return SimpleNamespace(
        open=done, close=done, there=there, capture=device, playout=device, returns=True, lost=None, facts={}
    )


async def test_the_first_turn_of_a_pipeline_built_anew_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fault the next turn, which no warm-up turn went before, carries `cold_pipeline`; no other does,
    and the code has its words."""
    monkeypatch.setattr("voicebench.live.session.LiveSession", _Breaks)
    monkeypatch.setattr(
        conversation._Talk, "_record", lambda self, facts, heard: failed_record(facts, "as it was told")
    )
    folder = RunFolder.create(tmp_path / "run")
    folder.start([])
    options = conversation.LiveOptions(turns=6)
    with folder.journal() as journal:
        plan = live_plan(scripted(), "made")
        screen = LiveScreen(800.0, plain=True)
        talk = conversation._Talk(plan, folder, Shared(), _card(), options, screen, journal)
        assert await talk.go_on()
        await talk.close()
    cold = ["cold_pipeline" in one.caveats for one in folder.turns().records]
    assert cold == [False, True, False, False, True, False]
    assert "{count}" in WORDS["cold_pipeline"]


async def test_the_models_of_all_modes_are_loaded_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mode's model and those of ASR and voice begin to be loaded before any is there."""
    _Loaded.loaded = threading.Event()
    all_at_once = threading.Barrier(3, action=_Loaded.loaded.set)
    base = scripted()
    other = base.own_modes[0].model_copy(update={"id": "made/n"})
    config = base.model_copy(update={"modes": ("made/m", "made/n"), "own_modes": (*base.own_modes, other)})
    plan = live_plan(config, "made")

    def loading(stage: Stage) -> Stage:
        return replace(stage, plugin=replace(stage.plugin, load=lambda *_: all_at_once.wait(20)))

    llm = {mode_id: loading(stage) for mode_id, stage in plan.specs.llm.items()}
    plan = replace(plan, specs=replace(plan.specs, llm=llm, asr=loading(plan.specs.asr)))
    monkeypatch.setattr("voicebench.live.session.LiveSession", _Loaded)
    monkeypatch.setattr(conversation, "question", lambda: None)
    options = conversation.LiveOptions(out=tmp_path / "run")
    options.wishes.press("q")
    await conversation.converse(plan, _card(), options, LiveScreen(800.0, plain=True))
    assert _Loaded.loaded.is_set()
