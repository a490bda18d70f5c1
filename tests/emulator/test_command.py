"""`voicebench emulate`: what it prints, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import typer
from typer.testing import CliRunner

from voicebench.cli.emulate import emulate
from voicebench.emulator.faults import FAULTS
from voicebench.emulator.process import EmulatorProcess
from voicebench.errors import BadRequest

COMMAND = "import typer; from voicebench.cli.emulate import emulate; typer.run(emulate)"


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(emulate)
    return app


def test_the_faults_are_listed() -> None:
    """--list-faults shows every fault with its settings, as text and as JSON, and serves nothing."""
    shown = CliRunner().invoke(_app(), ["--list-faults"])
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in FAULTS)
    assert "drop;after=5" in shown.stdout
    rows = json.loads(CliRunner().invoke(_app(), ["--list-faults", "--json"]).stdout)["faults"]
    assert [row["name"] for row in rows] == list(FAULTS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    """It prints where it listens as one JSON object, answers there, and ends on a signal with status 0."""
    (tmp_path / "mine.json").write_text('{"scripts": {"mine": {"first_text_ms": 1}}}', encoding="utf-8")
    arguments = ["--port", "0", "--json", "--script", "mine.json", "--log", "log.jsonl"]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert "mine" in said["models"]
        body = {"model": "mine", "messages": [{"role": "user", "content": "Hello"}]}
        request = Request(
            f"{said['openai_base_url']}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"authorization": "Bearer k"},
        )
        with urlopen(request) as answer:
            assert json.load(answer)["choices"][0]["message"]["content"].startswith("Hello!")
        process.send_signal(number)
        _, told = process.communicate(timeout=10)
        assert process.returncode == 0
        assert told.startswith("1 requests answered; 1 events")
    assert json.loads((tmp_path / "log.jsonl").read_text(encoding="utf-8"))["outcome"] == "complete"


def test_what_is_wrong_is_told(emulator: EmulatorProcess, tmp_path: Path) -> None:
    """A taken port, an unknown fault, a missing file and an open host without a token are errors in words."""
    for arguments, said in (
        (["--port", str(emulator.port)], "cannot listen"),
        (["--port", "0", "--fault", "flood"], "flood"),
        (["--port", "0", "--script", str(tmp_path / "absent.toml")], "absent.toml"),
        (["--port", "0", "--host", "0.0.0.0"], "other machines"),
        (["--port", "0", "--host", "no.such.host.invalid"], "other machines"),
    ):
        shown = CliRunner().invoke(_app(), arguments)
        assert isinstance(shown.exception, BadRequest)
        assert said in shown.exception.what


def test_the_command_is_quick_to_import() -> None:
    """Importing the command loads no server, vocabulary or settings library."""
    code = (
        "import sys, voicebench.cli.emulate; "
        "print([name for name in ('aiohttp', 'bpe_openai', 'pydantic', 'numpy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
