"""The live page's own scripts: what people and models say is text in it, and nothing else."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import voicebench.live.web
from tests.export.html_page import HOSTILE
from voicebench.live.web.page import Page
from voicebench.live.web.server import WebOptions, WebServer

STATIC = Path(voicebench.live.web.__file__).parent / "static"
SINKS = (
    "innerHTML|outerHTML|insertAdjacentHTML|document\\.write|createContextualFragment|DOMParser|srcdoc|"
    "\\beval\\b|new Function|setTimeout\\(\\s*[\"'`]|setHTML|javascript:|[{,]\\s*[\"']?on[a-z]{4,}[\"']?\\s*:"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ORIGIN = "http://page.test/"
CALM = "what is said"
SHOW = """async ([texts]) => {
  const { row, modeName } = await import("./turns.js");
  const { fall } = await import("./drawing.js");
  const counts = [];
  for (const text of texts) {
    const standing = { p50_ms: 700, counted: 1, hit: 1, n: 1 };
    const stages = { endpointing: 200, asr: 80, turn: 20, dispatch: 0, llm_ttfat: 200, clause: 100, tts: 60,
      playout: 40 };
    const turn = {
      turn: 0, mode: `x/${text}`, kind: "emulated", sample: text, outcome: "completed", reason: text,
      flags: ["client_limited"], caveats: [text], anchor: "waveform", transcript: text, reply: text,
      first_clause: text,
      voice_to_voice_ms: 700, stages_ms: stages, counted: false, barge_in_ms: null, uncertainty_ms: 30,
      slots: [], standing, picture: null,
    };
    const place = document.createElement("table");
    place.append(row(turn, 800, () => {}), ...modeName(turn), fall(turn, 800, 600));
    document.body.replaceChildren(place);
    counts.push([document.querySelectorAll("*").length, place.textContent]);
  }
  await new Promise((done) => setTimeout(done, 0));
  return counts;
}"""


def test_no_script_of_ours_makes_markup_of_text() -> None:
    """No script of the live page or the report has a place where a text could become markup or code."""
    scripts = [*STATIC.glob("*.js"), STATIC.parents[2] / "export" / "html" / "script.js"]
    assert len(scripts) >= 7
    for script in scripts:
        assert re.findall(SINKS, script.read_text("utf-8")) == [], script.name
    assert re.findall(SINKS, "x.innerHTML = y")
    assert re.findall(SINKS, "element('b', { onclick: y })")


async def test_no_text_keeps_the_page_from_hearing_more() -> None:
    """Half a surrogate pair, a NaN and an infinity are told to the page, and so is what follows."""
    page = Page()
    page.welcome = lambda: {"type": "welcome", "turns": ["\ud83d"]}
    server = WebServer(WebOptions(), page)
    await server.start()
    try:
        async with (
            asyncio.timeout(10),
            aiohttp.ClientSession() as session,
            session.ws_connect(
                server.url + "socket", origin=server.url.rsplit("/", 2)[0], max_msg_size=0
            ) as socket,
        ):
            heard: list[dict[str, Any]] = []
            while not heard or heard[-1].get("text") != "last":
                message = json.loads(await socket.receive_str())
                if message["type"] == "welcome":
                    for text in ("half \ud83d", "\u2028</script>", "last"):
                        page.tell(type="note", text=text, figures=[float("nan"), float("inf")])
                heard += [message] if message["type"] != "ping" else []
    finally:
        await server.close()
    assert heard[0] == {"type": "welcome", "turns": ["\ufffd"]}
    assert [one["text"] for one in heard[1:]] == ["half \ufffd", "\u2028</script>", "last"]
    assert heard[1]["figures"] == [None, None]


@pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and playwright: the live page was NOT opened in a browser",
)
def test_a_hostile_turn_is_text_in_the_page() -> None:
    """A turn whose mode, transcript, reply and reason are hostile has the elements of a calm one, shows its
    text without what would turn its direction, asks for nothing and opens no dialog."""
    from playwright.sync_api import sync_playwright

    seen: list[str] = []

    def served(route: Any) -> None:
        name = route.request.url.removeprefix(ORIGIN)
        if name == "":
            route.fulfill(body="<!doctype html><link rel=icon href=data:,><body>", content_type="text/html")
        elif (STATIC / name).is_file():
            route.fulfill(body=(STATIC / name).read_bytes(), content_type="text/javascript")
        else:
            seen.append(route.request.url)
            route.abort()

    def dismissed(dialog: Any) -> None:
        seen.append("dialog")
        dialog.dismiss()

    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore")
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = opened.new_page()
        page.on("dialog", dismissed)
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.route("**/*", served)
        page.goto(ORIGIN)
        found = page.evaluate(SHOW, [json.loads(json.dumps([CALM, *HOSTILE]).replace("\\ud800", "?"))])
        opened.close()
    assert seen == []
    assert {count for count, _ in found} == {found[0][0]}
    for text, (_, shown) in zip(HOSTILE, found[1:], strict=True):
        bare = re.sub("[\u202a-\u202e\u2066-\u2069\x00\x1b]", "", text).replace("\ud800", "?")
        assert shown.count(bare) >= 4
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", shown)
