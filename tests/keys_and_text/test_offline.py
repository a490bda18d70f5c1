"""What a run does on the quiet: no socket to the outside, no audio and no text on disk unless asked for."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

from tests.cli.running import ENERGY, SCRIPTED, tones
from tests.keys_and_text.canary import shown_in
from tests.keys_and_text.socket_log import plant

EMULATED = "emulated/gpt-5.3-codex-spark"
HEARD, ANSWERED = "Zanzibar", "Quagmire"
CONFIG = (
    SCRIPTED.replace("modes: [test/scripted]", f"modes: [test/scripted, {EMULATED}]")
    .replace("What is the capital city of France?", f"What of {HEARD}?")
    .replace("It is Paris.", f"It is {ANSWERED}.")
    + ENERGY
)
IN_CONFIG = {"run.json": 1, "report.json": 1, "report.html": 2}
"""So often the scripts stand in a file as a part of the configuration; a page also holds it packed."""


def ran(folder: Path, commands: list[list[str | Path]], path: list[Path]) -> str:
    """All that the commands say, in one process whose files nothing but voicebench keeps private."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.keys_and_text.commands_child", json.dumps(commands, default=str)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        umask=0,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def is_outside(place: object) -> bool:
    """Does an address, or a host's name, lead further than this machine?"""
    host = place[0] if isinstance(place, list) else place
    if host in (None, "", "localhost") or (isinstance(host, str) and host.startswith("/")):
        return False
    try:
        return not ip_address(str(host)).is_loopback
    except ValueError:
        return True


def test_an_offline_run_keeps_to_itself(tmp_path: Path) -> None:
    """A batch with the emulator and a slot run, their children included, open no socket but on loopback; not
    being asked they keep no audio; with --no-text no word is on disk; files are 0600 and folders 0700."""
    log = tmp_path / "sockets.jsonl"
    path = [plant(tmp_path / "hook", log), Path(__file__).parents[2]]
    audio = tones(tmp_path, 1)
    (tmp_path / "quiet.yaml").write_text(CONFIG, "utf-8")
    formats = "html,json,csv,markdown,parquet,trace,otel"
    told = ran(
        tmp_path,
        [
            ["batch", audio, "--config", "quiet.yaml", "--offline", "--no-text", "--out", "made/quiet"],
            ["report", "made/quiet", "--format", formats, "--out", "made/told"],
            [
                *("batch", audio, "--config", "quiet.yaml", "--mode", "test/scripted", "--offline"),
                *("--keep-audio", "--out", "made/kept"),
            ],
            [
                *("slot", "--mode", EMULATED, "--requests", "1", "--max-tokens", "20", "--offline"),
                *("--no-text", "--out", "made/slot", "--record-streams", "made/streams"),
            ],
        ],
        path,
    )
    assert told.count(": 0\n") == 4, told

    sockets = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert len({process for process, _, _ in sockets}) >= 3, "the command and its emulators"
    assert any(event == "socket.connect" for _, event, _ in sockets)
    assert [one for one in sockets if is_outside(one[2])] == []

    made = {str(one.relative_to(tmp_path / "made")): one for one in (tmp_path / "made").rglob("*")}
    modes = {name: stat.S_IMODE(one.stat().st_mode) for name, one in made.items()}
    assert {
        name: mode for name, mode in modes.items() if mode != (0o700 if made[name].is_dir() else 0o600)
    } == {}

    recordings = [name for name, one in made.items() if one.is_file() and one.suffix == ".flac"]
    assert len(recordings) == 1
    assert all(name.startswith("kept/audio/") for name in recordings)

    rows = [json.loads(line) for line in made["quiet/turns.jsonl"].read_text("utf-8").splitlines()]
    rows += [json.loads(line) for line in made["slot/turns.jsonl"].read_text("utf-8").splitlines()]
    assert [row["outcome"] for row in rows] == ["completed"] * 3
    assert not {"transcript", "reply", "spoken", "first_clause"} & {name for row in rows for name in row}
    for name, one in made.items():
        if one.is_file() and not name.startswith("kept"):
            shown, allowed = shown_in(name, one.read_bytes()), IN_CONFIG.get(one.name, 0)
            in_config = 0 if name.startswith("slot") else allowed
            assert (shown.count(HEARD), shown.count(ANSWERED)) == (in_config, in_config), name
    kept = made["kept/turns.jsonl"].read_text("utf-8")
    assert HEARD in kept
    assert ANSWERED in kept


def test_the_log_of_sockets_sees_the_outside(tmp_path: Path) -> None:
    """The log is one that can fail: a look-up and a connection to another host are in it."""
    log = tmp_path / "sockets.jsonl"
    path = [plant(tmp_path / "hook", log)]
    code = (
        "import socket; one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.connect(('192.0.2.1', 9))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(path[0])},
        timeout=60,
        check=False,
    )
    (line,) = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert line[1:] == ["socket.connect", ["192.0.2.1", 9]]
    assert is_outside(line[2])


REPORTING = """
import os
import voicebench
import onnxruntime, pipecat.audio.vad as vad
from pathlib import Path

model = Path(vad.__path__[0]) / "data" / "silero_vad.onnx"
onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
os._exit(0)
"""


def test_no_model_runtime_reports_to_its_maker(tmp_path: Path) -> None:
    """ONNX Runtime keeps an identity and a store of events for its reports: here it makes neither."""
    apart = ("CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in apart}
    done = subprocess.run(
        [sys.executable, "-c", REPORTING],
        env={**kept, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [one.name for one in tmp_path.rglob("*") if "onnx" in one.name.lower()] == []
