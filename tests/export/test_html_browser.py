"""The HTML report in a real browser: no request, no error, no dialog, and it can be used by keyboard."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.export.html_page import HOSTILE, everywhere
from tests.export.made_modes import five_modes
from voicebench.analysis.report import build_report
from voicebench.export.html.page import export

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and playwright: the report was NOT opened in a browser",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One headless Chromium."""
    from playwright.sync_api import sync_playwright

    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore")
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()


class Opened:
    """A page that was opened, with everything that it asked for and complained of."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.goto(file.as_uri())
        self.page.wait_for_load_state()

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append("dialog")
        dialog.dismiss()


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of five modes."""
    info, records = five_modes(20)
    file = tmp_path_factory.mktemp("five") / "report.html"
    file.write_bytes(export(build_report(info, records), records))
    return file


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_asks_for_nothing_and_fits(browser: Any, five: Path, width: int, scheme: str) -> None:
    """One request, the file itself; no complaint; and nothing sticks out of the screen sideways."""
    opened = Opened(browser, five, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert opened.requests == [five.as_uri()]
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.context.close()


def test_no_labels_of_a_chart_cover_one_another(browser: Any, five: Path) -> None:
    """In every visible chart, at both widths, no two texts overlap by more than a hair."""
    for width in (1280, 390):
        opened = Opened(browser, five, viewport={"width": width, "height": 800})
        covered = opened.page.evaluate(
            """() => [...document.querySelectorAll("svg.chart")].filter(one => one.checkVisibility())
            .flatMap(chart => {
              const texts = [...chart.querySelectorAll("text")];
              const boxes = texts.map(one => [one, one.getBoundingClientRect()]);
              return boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([, b]) =>
                Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
                Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5
              ).map(([other]) => one.textContent + " | " + other.textContent));
            })"""
        )
        assert covered == []
        opened.context.close()


def test_the_theme_can_be_switched(browser: Any, five: Path) -> None:
    """The button turns light into dark and back, whatever the system prefers."""
    opened = Opened(browser, five, color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(colour)
    opened.page.click("#theme")
    assert opened.page.evaluate(colour) != light
    opened.page.click("#theme")
    assert opened.page.evaluate(colour) == light
    opened.context.close()


def test_the_keyboard_reaches_everything_in_reading_order(browser: Any, five: Path) -> None:
    """Tab goes down the page; Enter opens a turn and closes the one before; arrows switch the measure."""
    opened = Opened(browser, five)
    page = opened.page
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => { const one = document.activeElement;
                const all = [...document.querySelectorAll("*")];
                return [all.indexOf(one), one.tagName, one.id || ""]; }"""
            )
        )
    places = [place for place, *_ in seen]
    assert places == sorted(places)
    assert {"BUTTON", "SUMMARY", "INPUT", "A"} <= {name for _, name, _ in seen}
    page.focus("#by-tokens")
    page.keyboard.press("ArrowRight")
    assert page.locator(".panel.by-words").is_visible()
    assert not page.locator(".panel.by-tokens").is_visible()
    turns = page.locator("details[name=turn] > summary")
    turns.nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("details[name=turn][open]").count() == 1
    assert page.locator("details[name=turn] > .said").nth(1).is_visible()
    opened.context.close()


def test_the_report_prints_with_all_its_charts(browser: Any, five: Path) -> None:
    """On paper the wide charts show with all labels, the table fits, and no button is there."""
    opened = Opened(browser, five, viewport={"width": 700, "height": 900})
    opened.page.emulate_media(media="print")
    assert opened.page.locator("svg.chart.wide").first.is_visible()
    assert not opened.page.locator("svg.chart.narrow").first.is_visible()
    assert not opened.page.locator("#theme").is_visible()
    assert opened.page.locator("svg.chart.wide text.listen").first.is_visible()
    widths = opened.page.evaluate("[document.querySelector('.modes').scrollWidth, document.body.clientWidth]")
    assert widths[0] <= widths[1]
    assert len(opened.page.pdf()) > 20_000
    opened.context.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_nothing(browser: Any, tmp_path: Path, text: str) -> None:
    """No dialog, no request, no complaint, and as many elements as with plain text."""
    counts = []
    for place, said in enumerate(("plain", text)):
        info, records = everywhere(said)
        file = tmp_path / f"{place}.html"
        file.write_bytes(export(build_report(info, records), records))
        opened = Opened(browser, file)
        assert opened.requests == [file.as_uri()]
        assert opened.complaints == []
        counts.append(opened.page.evaluate("document.querySelectorAll('*').length"))
        opened.context.close()
    assert counts[0] == counts[1]


def test_the_policy_stops_what_gets_in(browser: Any, five: Path, tmp_path: Path) -> None:
    """Were markup to slip in after all, its script would not run and its picture would not be asked for."""
    file = tmp_path / "slipped.html"
    slipped = b"<img src='http://127.0.0.1:9/x' onerror='document.title=1'><script>document.title=2</script>"
    file.write_bytes(five.read_bytes().replace(b"<main>", b"<main>" + slipped, 1))
    opened = Opened(browser, file)
    assert opened.page.title().startswith("voicebench")
    assert len(opened.complaints) >= 2
    opened.context.close()
