"""A page as a parser sees it, and hostile runs, for tests of the HTML report."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.report import build_report
from voicebench.export.html.page import export
from voicebench.turns.records import TurnRecord

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "]]><svg onload=alert(1)>",
    "a\u2028b\u2029c",
    "\u202eabc\u2066",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "</title></style></textarea><script>alert(1)</script>",
    "&lt;b&gt; &amp; \x00\x1b[31m \ud800",
)


class Page(HTMLParser):
    """A page's elements, attributes and texts, as a parser sees them."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.source = content.decode()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        """There is none."""
        pytest.fail(f"a comment: {data[:80]}")

    @property
    def names(self) -> Counter[str]:
        """How many elements of each name there are."""
        return Counter(tag for tag, _ in self.tags)

    def attributes(self, name: str) -> list[str]:
        """The values of one attribute, in order."""
        return [value or "" for _, found in self.tags for key, value in found.items() if key == name]

    def block(self, name: str) -> Any:
        """The values of the packed block of that id."""
        kind = re.escape('type="application/json+gzip;base64"')
        found = re.search(rf"<script {kind} id={name}>(.*?)</script>", self.source)
        assert found is not None
        return json.loads(gzip.decompress(base64.b64decode(found[1])))


def page_of(records: list[TurnRecord], info: dict[str, Any] | None = None) -> Page:
    """The page of a run of these records."""
    return Page(export(build_report(info or run_info(records), records), records))


def part(page: Page, begin: str, end: str) -> str:
    """The source from one section up to another."""
    return page.source[page.source.index(f"labelledby={begin}") : page.source.index(f"labelledby={end}")]


def at(told: Any, pointer: str) -> Any:
    """The value at an RFC 6901 pointer."""
    for key in pointer.split("/")[1:]:
        told = told[int(key)] if isinstance(told, list) else told[key]
    return told


def everywhere(text: str) -> tuple[dict[str, Any], list[TurnRecord]]:
    """A run with `text` in every field of text that a report shows."""
    records = [
        made(
            turn,
            mode=f"x/{text}",
            model=text,
            sample=text,
            transcript=text,
            reply=f"{text}. And more.",
            first_clause=f"{text}.",
            reason=text,
            outcome="completed" if turn < 12 else "failed",
            asked={"speed": text},
            served={text: text},
            caveats=[text],
            token_count=text,
            condition=text,
            work_ms={text: 3.0},
            audio="audio/x.flac",
            usd=0.01,
        )
        for turn in range(14)
    ]
    facts = {f"x/{text}": {"kind": "local", "published_decode_tok_s": 60, "published_source": text}}
    info = run_info(
        records,
        config={"name": text, "vad": {"stop_secs": 0.2}, text: [text]},
        environment={"system": text, text: 1},
        versions={text: text},
        models={text: {"sha256": text}},
        noise_floor_ms=None,
        noise_floor_reason=text,
        modes=facts,
    )
    return info, records
