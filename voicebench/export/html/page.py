"""One self-contained HTML file: verdict, modes, stages, slot, distribution, price, turns, machine."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from voicebench.analysis.report import Entry, Report
from voicebench.analysis.verdict import verdict_of
from voicebench.export.html.embedded import addresser
from voicebench.export.html.look import looks_of, patterns
from voicebench.export.html.markup import Safe, raw, tag
from voicebench.export.html.opening import opening
from voicebench.export.html.sections import sections
from voicebench.export.html.waterfalls import Addressed, recording_path, stage_names
from voicebench.export.report_json import plain_report
from voicebench.turns.durable import strict_json
from voicebench.turns.records import TurnRecord


def export(
    report: Report, records: Sequence[TurnRecord], *, embed_audio: Path | None = None, way_to_run: str = ""
) -> bytes:
    """The report as one HTML file in UTF-8 that asks nothing of any network.

    Recordings are links relative to the run folder, which `way_to_run` (with a slash at its end) leads to
    from the file's own place; with `embed_audio`, the run folder itself, they are in the file. One that
    cannot be read there stays a link.
    """
    return page(report, records, addresser(way_to_run, embed_audio)).encode()


def page(report: Report, records: Sequence[TurnRecord], address_of: Addressed) -> str:
    """The whole document."""
    looks = looks_of(report)
    verdict = verdict_of(report, records)
    groups: dict[Entry, list[TurnRecord]] = {}
    for record in records:
        groups.setdefault((record.mode, record.anchor), []).append(record)
    style, script = _asset("styles.css") + stage_names(), _asset("script.js")
    body = tag(
        "body",
        patterns(),
        tag("a", "To the figures", href="#modes", class_="skip"),
        opening(report, looks, verdict),
        tag("main", *sections(report, looks, verdict, groups, address_of)),
        _data("report-json", plain_report(report, records, verdict)),
        tag("script", raw(script)),
    )
    audible = any(recording_path(record) for record in records)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script, audible)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"voicebench report {report.run.id}"),
        tag("style", raw(style)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> str:
    """A file of the package, without indents and line ends."""
    content = files("voicebench.export.html").joinpath(name).read_text("utf-8")
    return "".join(map(str.strip, content.splitlines()))


def _policy(style: str, script: str, audible: bool) -> str:
    """Nothing may be loaded or run but this style, this script and, where there are any, the recordings."""
    rules = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src data:",
        *(["media-src 'self' data:"] if audible else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _data(name: str, values: object) -> Safe:
    """Figures for programs: `report.json`, packed by gzip and written in base64, which no browser runs.

    In Python: `json.loads(gzip.decompress(base64.b64decode(text)))`.
    """
    packed = gzip.compress(strict_json(values), mtime=0)
    return tag("script", raw(base64.b64encode(packed).decode()), type="application/json+gzip;base64", id=name)
