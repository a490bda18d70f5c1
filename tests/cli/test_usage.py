"""What the command line says when it is asked for something wrong, and what it loads for little."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import scripted_config, voicebench
from voicebench.__main__ import main
from voicebench.errors import ExitStatus

SAMPLES = Path(__file__).parents[2] / "audio_samples"
YES = SAMPLES / "yes.wav"


def test_help_loads_no_heavy_library() -> None:
    """`voicebench --help` imports neither pipecat nor a provider SDK nor numpy nor pydantic."""
    code = (
        "import sys\n"
        "from voicebench.__main__ import main\n"
        "assert main(['--help']) == 0\n"
        "heavy = {'pipecat', 'openai', 'anthropic', 'numpy', 'pydantic', 'faster_whisper', 'piper'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nope"], "nope"),
        (["batch", "--repeats", "none"], "--repeats"),
        (["batch", "/no/such/place.wav"], "/no/such/place.wav"),
        (["batch", "--config", "missing.yaml"], "missing.yaml"),
        (["batch", str(YES), "--mode", "no/such-mode"], "local/smollm2-135m"),
        (["report", "no-such-run"], "no-such-run"),
    ],
)
def test_a_wrong_request_is_told_without_a_traceback(arguments: list[str], told: str, tmp_path: Path) -> None:
    """A wrong request ends with status 2 and words that name what is wrong, never a traceback."""
    done = voicebench(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_of_our_own_is_none_of_the_other_statuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody foresaw is told with its traceback and ends with 70: Python's own 1 is a breached limit."""

    def broken(arguments: list[str]) -> int:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("voicebench.cli.app.run", broken)
    assert main(["check", "run", "--p50-ms", "800"]) == int(ExitStatus.CRASHED) == 70
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "RuntimeError: nobody foresaw this" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("budget_sm: 700", "'budget_ms'"),
        ("vad: {stop_sec: 0.3}", "'stop_secs'"),
        ("asr: {kind: wisper}", "'whisper'"),
        ("tts: {kind: piper, voise: x}", "'voice'"),
        ("repeats: 0", "repeats"),
    ],
)
def test_a_wrong_configuration_names_the_nearest_valid_key(line: str, told: str, tmp_path: Path) -> None:
    """An unknown key or kind ends with status 2, names the file, and offers the nearest valid one."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"{line}\n", "utf-8")
    done = voicebench("batch", YES, "--config", path, cwd=tmp_path)
    assert done.returncode == 2
    assert "mine.yaml" in done.stderr
    assert told in done.stderr


def test_a_folder_without_audio_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    """A folder without audio ends with status 2 and says which files are looked for."""
    (tmp_path / "empty").mkdir()
    done = voicebench("batch", "empty", cwd=tmp_path)
    assert done.returncode == 2
    assert "wav" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_missing_key_is_named_with_the_way_to_set_it(tmp_path: Path) -> None:
    """A mode on a hosted service without its key ends with status 2 and names the variable."""
    path = scripted_config(
        tmp_path,
        "",
    )
    text = (
        path.read_text("utf-8")
        .replace("api: scripted", "api: openai-chat")
        .replace(
            'settings: {text: "It is Paris.", first_text_ms: 30, per_word_ms: 2}',
            "settings: {base_url: 'https://llm.example/v1', api_key_env: SOME_KEY}",
        )
    )
    path.write_text(text, "utf-8")
    done = voicebench("batch", YES, "--config", path, cwd=tmp_path, SOME_KEY="")
    assert done.returncode == 2
    assert "SOME_KEY" in done.stderr
    assert "export SOME_KEY=" in done.stderr


@pytest.mark.parametrize("command", [["modes"], ["modes", "--json"], ["--help"]])
def test_a_reader_that_has_left_is_no_breached_limit(command: list[str]) -> None:
    """Output that nobody reads any more ends with 2: 1 would say that a limit is breached."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "voicebench", *command], stdout=write, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (2, b"")
