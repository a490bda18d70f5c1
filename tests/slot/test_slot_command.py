"""`voicebench slot` as a person runs it: what it prints, how it ends, and that no key is written down."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.cli.running import voicebench
from tests.slot.echoing import echoing
from tests.slot.slot_runs import quick

CANARY = "sk-canary-7Qw9+Er3/Ty5Ui1Op8As"


def config(folder: Path, *rows: dict[str, object], **more: object) -> Path:
    """A file with these modes as its own."""
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({"own_modes": list(rows), **more}), "utf-8")
    return path


def test_json_is_the_report_and_all_else_goes_elsewhere(tmp_path: Path) -> None:
    """Standard output is one JSON object, the report with its cold connections; the rest is for eyes."""
    given = config(tmp_path, quick("a"), quick("b", "openai-chat"))
    done = voicebench(
        *("slot", "--config", given, "--mode", "own/a", "--mode", "own/b", "--requests", "2"),
        *("--max-tokens", "30", "--slot-ms", "450", "--out", tmp_path / "run", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [entry["mode"] for entry in told["modes"]] == ["own/a", "own/b"]
    assert told["slots_ms"] == [450]
    assert told["run"]["command"] == "slot"
    for entry in told["modes"]:
        assert entry["cold_connections"]["connect_ms"]["n"] == 1
        assert (
            entry["cold_connections"]["ttfat_ms"]["p50"] > entry["cold_connections"]["connect_ms"]["p50"] > 0
        )
    assert "Delivered by the end of the slot" in done.stderr
    assert told == json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))


def test_a_request_that_fails_is_told_by_the_status(tmp_path: Path) -> None:
    """A run with failed requests ends with 4 and says in each line why."""
    given = config(tmp_path, quick("bad", emulation={"fault": "429;retry_after=3"}))
    done = voicebench(
        *("slot", "--config", given, "--mode", "own/bad", "--requests", "1", "--out", tmp_path / "run"),
        cwd=tmp_path,
    )
    assert done.returncode == 4
    assert "rate_limited" in done.stderr
    assert "retry after 3 s" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--mode", "no/such"], "unknown mode"),
        (["--mode", "openai/gpt-5.3-codex-spark"], "emulated/gpt-5.3-codex-spark"),
        (["--mode", "openai/gpt-6-luna"], "OPENAI_API_KEY"),
        (["--mode", "anthropic/claude-opus-5-5"], "ANTHROPIC_API_KEY"),
        (["--replay", "no-such.json"], "no-such.json"),
        (["--requests", "0"], "requests"),
        (["--slot-ms", "nan"], "--slot-ms"),
    ],
)
def test_a_wrong_request_is_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    """Status 2, one message that names what is wrong, no traceback, and no run folder."""
    done = voicebench("slot", *arguments, cwd=tmp_path, OPENAI_API_KEY="", ANTHROPIC_API_KEY="")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_stream_is_recorded_and_replayed(tmp_path: Path) -> None:
    """`--record-streams` writes files that `--replay` takes as modes."""
    given = config(tmp_path, quick("a"))
    first = voicebench(
        *("slot", "--config", given, "--mode", "own/a", "--requests", "1", "--max-tokens", "20", "--quiet"),
        *("--out", tmp_path / "run", "--record-streams", tmp_path / "streams"),
        cwd=tmp_path,
    )
    assert first.returncode == 0, first.stderr
    [file] = (tmp_path / "streams").iterdir()
    again = voicebench(
        *("slot", "--replay", file, "--requests", "1", "--out", tmp_path / "again", "--json"), cwd=tmp_path
    )
    assert again.returncode == 0, again.stderr
    [entry] = json.loads(again.stdout)["modes"]
    assert (entry["mode"], entry["kind"]) == (f"replay/{file.stem}", "emulated")
    assert entry["turns"]["completed"] == 1


@pytest.fixture
def endpoint() -> Iterator[int]:
    """An endpoint that repeats the caller's key."""
    with echoing() as port:
        yield port


def parts(key: str) -> set[str]:
    """Every eight characters in a row of the key, in each form."""
    raw = key.encode()
    forms = [key, quote(key, safe=""), base64.b64encode(raw).decode()[:-4]]
    return {form[at : at + 8] for form in forms for at in range(len(form) - 7)}


def test_no_key_is_ever_written_down(tmp_path: Path, endpoint: int) -> None:
    """Through success, 401, 429, an error in a stream and a time-out, with the SDK's debug log on, no output
    and no file holds any part of the key."""
    rows: list[dict[str, object]] = [
        {
            "id": f"own/{name}",
            "kind": "live",
            "provider": "x",
            "api": "openai-chat",
            "model": name,
            "settings": {"base_url": f"http://127.0.0.1:{endpoint}/v1", "api_key_env": "CANARY_KEY"},
        }
        for name in ("plain", "401", "429", "error", "hang")
    ]
    given = config(tmp_path, *rows)
    modes: list[str] = [part for row in rows for part in ("--mode", str(row["id"]))]
    done = voicebench(
        *("slot", "--config", given, "--requests", "1", "--timeout-s", "1", "--json"),
        *modes,
        *("--out", tmp_path / "run", "--record-streams", tmp_path / "streams"),
        cwd=tmp_path,
        CANARY_KEY=CANARY,
        OPENAI_API_KEY=f"{CANARY}-other",
        OPENAI_LOG="debug",
    )
    assert done.returncode == 4, done.stderr
    outcomes = {entry["mode"]: entry["turns"] for entry in json.loads(done.stdout)["modes"]}
    assert outcomes["own/plain"]["completed"] == 1
    assert outcomes["own/401"]["failed"] == 1
    assert outcomes["own/429"]["rate_limited"] == 1
    assert outcomes["own/error"]["failed"] == 1
    assert outcomes["own/hang"]["timed_out"] == 1
    files = [path for folder in ("run", "streams") for path in (tmp_path / folder).rglob("*")]
    texts = {str(path): path.read_text("utf-8") for path in files if path.is_file()}
    texts |= {"stdout": done.stdout, "stderr": done.stderr}
    assert len(texts) >= 6
    assert "Incorrect API key provided: [key]" in texts[str(tmp_path / "run" / "turns.jsonl")]
    for name, text in texts.items():
        found = [part for part in parts(CANARY) if part in text]
        assert not found, f"{name} holds a part of the key"
