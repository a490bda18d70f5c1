"""How a conversation ends: by key, by Ctrl-C, and when a device goes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.live.talking import LONG, PARIS, ROOT, Talk, environment_without_sound, scripted
from tests.live.virtual_card import MICROPHONE, SPEAKER, VirtualCard
from tests.processes import children_of, gone_within


def test_a_lost_device_fails_the_turn_and_ends_the_run(card: VirtualCard, tmp_path: Path) -> None:
    """A card that goes in the middle of a reply is noticed within about a second; the journal stays whole,
    and the run says which devices it used."""
    with Talk(card, tmp_path, "--config", scripted(tmp_path, LONG), "--turns", "3") as talk:
        talk.turns(1, PARIS)
        card.kill()
        gone = time.monotonic()
        talk.wait_for("no sign of life", within=10)
        assert time.monotonic() - gone < 1.5
        assert talk.end(15) == 4, "".join(talk.lines)
        (one,) = talk.records()
        assert one["outcome"] == "failed"
        assert MICROPHONE in one["reason"] or SPEAKER in one["reason"]
        used = json.loads((talk.run / "run.json").read_text("utf-8"))["devices"]
        assert (used["input"]["name"], used["output"]["name"]) == (MICROPHONE, SPEAKER)
        report = talk.report()
        assert report["run"]["complete"] is False
        assert report["modes"][0]["turns"]["failed"] == 1


@pytest.mark.parametrize("moment", ["beginning", "listening", "person", "agent"])
def test_ctrl_c_closes_everything_and_leaves_a_report(card: VirtualCard, tmp_path: Path, moment: str) -> None:
    """Ctrl-C at any moment ends with status 130, a partial report of what was had within two seconds, and no
    child left."""
    with Talk(card, tmp_path, "--config", scripted(tmp_path, LONG), "--turns", "3") as talk:
        if moment == "beginning":
            talk.wait_for_folder()
        else:
            talk.turns(1)
            talk.wait_for("test/scripted: ", 1)
        if moment in {"person", "agent"}:
            speaking = talk.say(PARIS)
            if moment == "agent":
                speaking.wait(20)
                card.wait_until(lambda tail: float(np.sqrt(np.mean(tail[:, 1] ** 2))) > 0.03, 0.05)
        children = children_of(talk.process.pid)
        asked, asked_at = time.monotonic(), time.time()
        talk.interrupt()
        assert talk.end(20) == 130, "".join(talk.lines)
        took = time.monotonic() - asked
        written = (talk.run / "report.json").stat().st_mtime - asked_at
        assert written <= 2.0, f"the report took {written:.1f} s"
        assert took <= 4.0, f"it took {took:.1f} s"
        assert all(gone_within(child, 2) for child in children)
        assert "Traceback" not in "".join(talk.lines)
        assert len(talk.records()) == (0 if moment == "beginning" else 1)
        report = talk.report()
        assert report["run"]["complete"] is False
        assert moment == "beginning" or report["modes"][0]["turns"]["completed"] == 1


def test_keys_go_to_the_next_mode_repeat_and_quit(card: VirtualCard, tmp_path: Path) -> None:
    """r speaks the last words again, n goes to the next mode, q ends with status 0."""
    keyboard, terminal = pty.openpty()
    modes = ("--mode", "test/scripted", "--mode", "test/other")
    try:
        with Talk(card, tmp_path, "--config", scripted(tmp_path), *modes, terminal=terminal) as talk:
            talk.turns(1, PARIS)
            talk.wait_for("test/scripted: ", 1)
            os.write(keyboard, b"nr")
            talk.wait_for("test/other: ", 1)
            os.write(keyboard, b"q")
            assert talk.end(20) == 0, "".join(talk.lines)
            first, second = talk.records()
            assert (first["mode"], first["sample"]) == ("test/scripted", "microphone")
            assert (second["mode"], second["sample"]) == ("test/other", "repeated")
            assert second["outcome"] == "completed"
            assert talk.report()["run"]["complete"] is True
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_devices_are_listed_by_index_and_name(card: VirtualCard) -> None:
    """--list-devices names each device, and as JSON gives index, name and directions."""
    done = _live(card.environment, "--list-devices", "--json")
    assert done.returncode == 0, done.stderr
    names = {one["name"]: one for one in json.loads(done.stdout)["devices"]}
    assert {MICROPHONE, SPEAKER} <= set(names)
    assert names[MICROPHONE]["inputs"] > 0
    assert MICROPHONE in _live(card.environment, "--list-devices").stdout


def test_an_unknown_device_is_refused_with_those_there_are(card: VirtualCard) -> None:
    """A device that is not there ends with status 2 and the names of those that are."""
    done = _live(card.environment, "--config", "configs/scripted.yaml", "--input-device", "no such thing")
    assert done.returncode == 2
    assert "no such thing" in done.stderr
    assert MICROPHONE in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("sound")
def test_a_machine_whose_devices_do_not_answer_says_so(tmp_path: Path) -> None:
    """Where no sound device answers the command ends with status 2, in words, and makes no run folder."""
    environment = environment_without_sound(tmp_path)
    done = _live(environment, "--config", "configs/scripted.yaml", "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert "--list-devices" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("module", ["devices", "microphone", "speaker", "echo"])
def test_importing_the_audio_modules_needs_no_portaudio(module: str) -> None:
    """The modules import where sounddevice cannot be."""
    code = (
        "import sys; sys.modules['sounddevice'] = None\n"
        "from voicebench.stages.quiet import hush_pipecat; hush_pipecat()\n"
        f"import voicebench.audio.{module}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _live(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voicebench", "live", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
