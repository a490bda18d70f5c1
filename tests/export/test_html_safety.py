"""The HTML report is safe to open: hostile text stays text, nothing else runs, recordings stay inside."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.analysis.made_run import made_run, run_info
from tests.export.html_page import HOSTILE, Page, everywhere, page_of
from tests.turns.made import made
from voicebench.analysis.report import build_report
from voicebench.export.html.page import export


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_leaves_the_elements_as_they_are(text: str) -> None:
    """The same elements and attributes stand there whatever people, models and files are called or say."""
    info, records = everywhere("plain")
    calm = page_of(records, info)
    info, records = everywhere(text)
    page = page_of(records, info)
    assert page.names == calm.names
    assert [sorted(found) for _, found in page.tags] == [sorted(found) for _, found in calm.tags]
    assert not re.search("[\u2028\u2029\u202a-\u202e\u2066-\u2069\x00\x1b]", page.source.split("<script")[0])
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]


def test_hostile_text_is_shown_as_text() -> None:
    """What looks like markup can be read, in the reply, the transcript and the mode's name."""
    text = "<img src=x onerror=alert(1)>"
    info, records = everywhere(text)
    assert sum(text in shown for shown in page_of(records, info).texts) > 20


def test_nothing_but_the_pages_own_style_and_script_may_run() -> None:
    """The policy names the hashes of the one style and the one script, and nothing from outside."""
    info, records = made_run(turns=12)
    page = page_of(records, info)
    policy = next(
        found["content"] for tag, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for name, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", page.source, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[directive] == f"'sha256-{digest}'"
    assert "media-src" not in rules
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not page.attributes("style")
    links = page.attributes("href") + page.attributes("src")
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert "url(http" not in page.source


@pytest.mark.parametrize(
    "path",
    [
        "../x.flac",
        "/etc/x.flac",
        "audio/../../x.flac",
        "javascript:alert(1)//x.flac",
        "audio\\..\\x.flac",
        "audio/x.exe",
    ],
)
def test_a_recording_elsewhere_is_no_link(path: str) -> None:
    """Only a sound file below the run's audio folder is linked."""
    assert page_of([made(0, audio=path)]).names["audio"] == 0


def test_recordings_are_links_and_on_request_inside(tmp_path: Path) -> None:
    """By default a relative link; with `embed_audio` the bytes; one that cannot be read stays a link."""
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "a b.flac").write_bytes(b"fLaC-bytes")
    records = [made(0, audio="audio/a b.flac"), made(1, audio="audio/gone.flac")]
    report = build_report(run_info(records), records)
    assert sorted(Page(export(report, records)).attributes("src")) == ["audio/a%20b.flac", "audio/gone.flac"]
    page = Page(export(report, records, embed_audio=tmp_path))
    encoded = base64.b64encode(b"fLaC-bytes").decode()
    assert sorted(page.attributes("src")) == ["audio/gone.flac", f"data:audio/flac;base64,{encoded}"]


@pytest.mark.parametrize(
    "folder", ["javascript:alert(1)", '" onerror="alert(1)', "<b>", "a b#c?d", "..\u2028", "b\udcff"]
)
def test_the_way_to_a_recording_is_an_address_whatever_folders_are_called(folder: str) -> None:
    """A folder's name between page and run is quoted: it is no scheme, attribute, query or fragment."""
    records = [made(0, audio="audio/x.flac")]
    page = Page(export(build_report(run_info(records), records), records, way_to_run=f"{folder}/"))
    (source,) = page.attributes("src")
    assert unquote(source, errors="surrogateescape") == f"{folder}/audio/x.flac"
    assert not set(source) & set(":\"'<>#? \u2028")
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]


def test_embedding_follows_no_link_out_of_the_run(tmp_path: Path) -> None:
    """A planted link to a file outside the run folder is not read."""
    (tmp_path / "secret.flac").write_bytes(b"secret")
    run = tmp_path / "run"
    (run / "audio").mkdir(parents=True)
    (run / "audio" / "x.flac").symlink_to(tmp_path / "secret.flac")
    records = [made(0, audio="audio/x.flac")]
    page = export(build_report(run_info(records), records), records, embed_audio=run)
    assert base64.b64encode(b"secret") not in page
