"""A conversation over the page's socket: the page is told the journal; a page that goes is told of."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.live.fake_page import FakePage
from tests.live.talking import LONG, SHORT, YES, Talk, scripted
from tests.processes import children_of, gone_within
from voicebench.cli.app import app
from voicebench.errors import BadRequest
from voicebench.live.beginning import live_plan
from voicebench.live.conversation import LiveOptions
from voicebench.live.web.server import WebOptions
from voicebench.live.web.talk import WebTalk
from voicebench.plan.config import load_config
from voicebench.turns.run_folder import RunFolder

HOSTILE = "</td><script>alert(1)</script>."


@asynccontextmanager
async def _served(folder: Path, reply: str, **options: Any) -> AsyncIterator[tuple[WebTalk, str]]:
    """A conversation that is held while entered; its end is waited for."""
    path = scripted(folder, reply)
    config = load_config(path).model_copy(update={"modes": ("test/scripted", "test/other")})
    plan = live_plan(config, str(path))
    talk = WebTalk(plan, LiveOptions(out=folder / "run", **options), WebOptions())
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    held = asyncio.create_task(talk.hold(address.set_result, _write_report))
    try:
        yield talk, await address
        async with asyncio.timeout(20):
            await held
    finally:
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)


def _write_report(folder: RunFolder) -> None:
    (folder.path / "report.html").write_text("<p>report", "utf-8")
    (folder.path / "report.json").write_text("{}", "utf-8")


def _journal(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "run" / "turns.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


async def _ready(page: FakePage) -> None:
    """Press Start, and wait until one may speak."""
    await page.start()
    await page.until(lambda: bool(page.of("progress")))


async def test_the_page_is_told_the_journal(tmp_path: Path) -> None:
    """Two turns in two modes, one repeated: the page has the journal's figures, and End gives the report."""
    async with _served(tmp_path, HOSTILE) as (talk, url), FakePage(url) as page:
        assert not talk.page.connected
        await _ready(page)
        page.speak(YES)
        await page.turns(1)
        await page.say(type="wish", what="mode", mode="test/other")
        await page.say(type="wish", what="repeat")
        told = await page.turns(2)
        await page.say(type="wish", what="end")
        await page.until(lambda: bool(page.of("ended")))
        kept = _journal(tmp_path)
        assert [one["mode"] for one in kept] == ["test/scripted", "test/other"]
        assert [one["sample"] for one in kept] == ["microphone", "repeated"]
        for shown, one in zip(told, kept, strict=True):
            assert one["outcome"] == "completed"
            assert one["anchor"] == "vad_backdated"
            assert one["reply"] == HOSTILE
            for name in ("turn", "mode", "outcome", "transcript", "reply", "voice_to_voice_ms", "stages_ms"):
                assert shown[name] == one[name], name
            assert shown["uncertainty_ms"] == one["uncertainty_ms"]
            assert sum(shown["uncertainty"].values()) <= one["uncertainty_ms"] + 60
            assert [slot["slot"] for slot in shown["slots"]] == ["400", "500", "residual"]
            assert max(shown["picture"]["person"]) > 5
            assert max(shown["picture"]["agent"]) > 5
        last = page.of("progress")[-1]
        assert last["told"] in ("the agent speaks", "listening")
        heard = [one["marks_ms"] for one in page.of("progress") if "first_audible" in one["marks_ms"]]
        assert heard[0]["first_audible"] == pytest.approx(kept[0]["voice_to_voice_ms"], abs=1.0)
        assert told[0]["standing"]["p50_ms"] == kept[0]["voice_to_voice_ms"] or not told[0]["counted"]
        (ended,) = page.of("ended")
        assert {one["name"] for one in ended["files"]} == {"report.html", "report.json"}
        run = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
        assert run["complete"] is True
        assert run["devices"]["web"] is True


async def test_a_page_that_goes_fails_its_turn_and_may_come_back(tmp_path: Path) -> None:
    """A tab closed in a reply fails the turn within a second; closed while nobody speaks it fails nothing."""
    async with _served(tmp_path, SHORT) as (talk, url):
        async with FakePage(url) as page:
            await _ready(page)
            page.speak(YES)
            await page.until(lambda: page.played > 4_000)
        gone = time.monotonic()
        while not (tmp_path / "run" / "turns.jsonl").read_text("utf-8"):
            assert time.monotonic() - gone < 1.0
            await asyncio.sleep(0.01)
        async with FakePage(url) as page:
            await page.until(lambda: bool(page.of("welcome")))
            (welcome,) = page.of("welcome")
            (lost,) = welcome["turns"]
            assert lost["outcome"] == "failed"
            assert "closed" in lost["reason"]
            await page.start()
            await page.until(lambda: bool(page.of("listening")))
        async with FakePage(url) as page:
            await _ready(page)
            page.speak(YES)
            await page.turns(1)
            await page.say(type="wish", what="end")
            await page.until(lambda: bool(page.of("ended")))
        assert [one["outcome"] for one in _journal(tmp_path)] == ["failed", "completed"]
        assert talk.page.generation == 3


async def test_another_window_takes_the_conversation_over(tmp_path: Path) -> None:
    """A second page replaces the first; nonsense ends a page; one whose sound stops is gone until Start."""
    async with _served(tmp_path, LONG) as (talk, url), FakePage(url) as first:
        await _ready(first)
        async with FakePage(url) as second:
            await _ready(second)
            assert first._socket.closed
            assert first._socket.close_code == 4000
            await second.say(type="nonsense")
            await asyncio.wait_for(second._tasks[0], 5)
            assert second._socket.close_code == 1008
        async with FakePage(url) as third:
            await third.start()
            await third.until(lambda: bool(third.of("listening")))
            third._tasks.pop().cancel()
            stopped = time.monotonic()
            while talk.page.connected:
                assert time.monotonic() - stopped < 1.0
                await asyncio.sleep(0.01)
            await third.start()
            await third.until(lambda: len(third.of("listening")) == 2)
            await third.say(type="wish", what="end")
            await third.until(lambda: bool(third.of("ended")))


async def test_ctrl_c_ends_the_page_and_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works without PortAudio; Ctrl-C in a turn hands over the partial report and leaves no child."""
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    arguments = ("--config", scripted(tmp_path), "--web")
    with Talk(None, tmp_path, *arguments, devices=()) as talk:
        await asyncio.to_thread(talk.wait_for, "http://")
        url = next(line.strip() for line in talk.lines if "http://" in line)
        async with FakePage(url) as page:
            await _ready(page)
            page.speak(YES)
            await page.turns(1)
            page.speak(YES)
            await page.until(lambda: page.of("progress")[-1]["told"] == "you speak")
            children = children_of(talk.process.pid)
            talk.interrupt()
            await page.until(lambda: bool(page.of("ended")), within=10)
            assert "terminal" in page.of("ended")[0]["why"]
            assert len(page.of("ended")[0]["files"]) == 2
        assert await asyncio.to_thread(talk.end) == 130, "".join(talk.lines)
        assert all(gone_within(child, 2) for child in children)
        assert len(talk.records()) == 1
        assert talk.report()["run"]["complete"] is False


@pytest.mark.parametrize(
    "arguments", [("--port", "8000"), ("--web", "--input-device", "1"), ("--web", "--host", "0.0.0.0")]
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...]) -> None:
    """The page's options need --web, devices cannot be named with it, and it has one exact address."""
    done = CliRunner().invoke(app, ["live", "--config", "configs/scripted.yaml", *arguments])
    assert isinstance(done.exception, BadRequest)
