"""The page in a real browser, over a virtual sound card that records both sides on one sample clock."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live.talking import LONG, PARIS, Talk, scripted
from tests.live.virtual_card import RATE, VirtualCard
from voicebench.audio.waveform import conversation, segments

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
]


@contextmanager
def _browser(card: VirtualCard, folder: Path, url: str, seen: list[str]) -> Iterator[Any]:
    """The page at `url`. `seen` gets each error of the page, and each request to anywhere else."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("The page's test needs a browser. Run:  apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(folder / "profile"),
            executable_path=chromium,
            headless=True,
            env={**card.environment},
            args=ARGUMENTS,
            ignore_default_args=["--mute-audio"],
            permissions=["microphone"],
            viewport={"width": 390, "height": 844},
        )
        try:
            page = context.pages[0]
            page.on(
                "console", lambda one: seen.append(one.text) if one.type in ("error", "warning") else None
            )
            page.on("pageerror", lambda one: seen.append(str(one)))
            page.on("request", lambda one: None if _own(one.url, url) else seen.append(one.url))
            page.goto(url)
            yield page
        finally:
            context.close()


def _own(address: str, url: str) -> bool:
    return address.startswith((url, "blob:", "data:", url.replace("http", "ws", 1)))


def test_two_questions_are_asked_and_answered_in_the_browser(card: VirtualCard, tmp_path: Path) -> None:
    """Click, ask, speak over the answer: the table is the journal, V2V the recording's, nothing goes out."""
    seen: list[str] = []
    config = scripted(tmp_path, LONG)
    with Talk(card, tmp_path, "--config", config, "--web", devices=()) as talk:
        talk.wait_for("http://")
        url = next(line.strip() for line in talk.lines if "http://" in line)
        with _browser(card, tmp_path, url, seen) as page:
            page.click("#start")
            page.wait_for_selector("#state:text-is('Listening: speak')")
            talk.say(PARIS)
            page.wait_for_selector("#state:text-is('The agent speaks')")
            talk.say(PARIS).wait(20)
            page.wait_for_selector("tr[data-turn='1']", timeout=30_000)
            rows = [_row(page, number) for number in (0, 1)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            page.keyboard.press("q")
            page.wait_for_selector("#files a", timeout=20_000)
            with page.expect_download() as download:
                page.click("#files a >> nth=1")
            report = Path(download.value.path()).read_bytes()
        assert talk.end() == 0, "".join(talk.lines)
        assert seen == []
        assert wide <= 390
        records = talk.records()
        assert report == (talk.run / "report.json").read_bytes()
        assert [one["outcome"] for one in records] == ["interrupted", "completed"]
        for shown, one in zip(rows, records, strict=True):
            assert one["transcript"] in shown["said"]
            assert one["reply"] in shown["said"]
        assert float(rows[1]["v2v"]) == records[1]["voice_to_voice_ms"]
        sound = card.recording()
        truth = conversation(sound[:, 0], sound[:, 1], RATE).turns
        _agrees(records[1], [one.voice_to_voice_ms for one in truth][-1])
        spoken_over = segments(sound[:, 1], RATE).segments[0]
        person = [one for one in segments(sound[:, 0], RATE).segments if one.start_s > spoken_over.start_s]
        silent_ms = (spoken_over.end_s - person[0].start_s) * 1000
        assert abs(records[0]["barge_in_ms"] - silent_ms) <= records[0]["uncertainty_ms"]


def _row(page: Any, number: int) -> dict[str, Any]:
    row = page.locator(f"tr[data-turn='{number}']")
    figure = row.locator("data.v2v")
    return {
        "said": row.locator(".said-cell").inner_text(),
        "v2v": figure.get_attribute("value") if figure.count() else None,
    }


def _agrees(record: dict[str, Any], truth: float | None) -> None:
    """The reported latency is that of the recorded card, within what the record says it may be off by."""
    assert truth is not None
    off = record["voice_to_voice_ms"] - truth
    assert abs(off) <= record["uncertainty_ms"], f"off by {off:.1f}, stated {record['uncertainty_ms']:.1f}"
