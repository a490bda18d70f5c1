"""`voicebench measure` from its command line to its outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile
import typer
from numpy.typing import NDArray
from typer.testing import CliRunner

from tests.audio.waveform_calls import RATE, Said, clean_call, with_noise
from voicebench.cli.measure import clock, measure
from voicebench.cli.measured import reason_text
from voicebench.errors import VoicebenchError

app = typer.Typer()
app.command()(measure)


@pytest.fixture(scope="module")
def truth() -> list[Said]:
    """What is said in the recording."""
    return clean_call(11)[2]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A call with the user on the left."""
    user, agent, _ = clean_call(11)
    path = tmp_path_factory.mktemp("calls") / "call.wav"
    soundfile.write(path, np.stack([user, agent], axis=1), RATE)
    return path


def run(*arguments: str | Path) -> tuple[str, str]:
    """Standard output and standard error of one measurement."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def result_of(*arguments: str | Path) -> dict[str, Any]:
    """The one JSON object on standard output, read strictly."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not strict JSON")

    out, _ = run(*arguments, "--json")
    found = json.loads(out, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def refused(*arguments: str | Path) -> VoicebenchError:
    """The error that a request ends with, which says what to do."""
    with pytest.raises(VoicebenchError) as caught:
        CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert caught.value.exit_status == 2
    return caught.value


def test_the_json_holds_the_contract(recording: Path, truth: list[Said]) -> None:
    """The object has the fields that scripts rely on, and the true gaps to 20 ms."""
    found = result_of(recording)
    assert (found["schema"], found["sample_rate"], found["user_channel"]) == (1, RATE, "left")
    assert found["file"] == str(recording)
    assert found["duration_s"] == pytest.approx(soundfile.info(recording).duration)
    gaps = [turn["voice_to_voice_ms"] for turn in found["turns"]]
    assert gaps == pytest.approx([said.gap_ms for said in truth], abs=20)
    for turn in found["turns"]:
        assert {
            "user_start_s",
            "user_end_s",
            "agent_onset_s",
            "agent_end_s",
            "interrupted",
            "certain",
        } <= set(turn)
    counted = found["voice_to_voice_ms"]
    assert counted["n"] + counted["missing"] + counted["excluded"] == len(truth)
    assert {"hit", "n", "share", "ci95"} == set(found["budget"])
    assert all({"code", "text", "mode", "count"} == set(caveat) for caveat in found["caveats"])


def test_with_json_the_table_goes_to_standard_error(recording: Path) -> None:
    """Standard output is one line of JSON, and what is meant for eyes is on standard error."""
    out, err = run(recording, "--json")
    assert out.count("\n") == 1
    assert "Voice-to-voice latency: median" in err
    plain_out, plain_err = run(recording)
    assert "Voice-to-voice latency: median" in plain_out
    assert plain_err == ""


def test_the_table_shows_each_turn_and_the_summary(recording: Path, truth: list[Said]) -> None:
    """Each turn is a row with its times, and the share within the budget comes with its interval."""
    out, _ = run(recording, "--budget-ms", "500")
    for said in truth:
        assert any(clock(said.user_end_s + step) in out for step in (-0.01, 0, 0.01))
    assert "Within 500 ms:" in out
    assert "95 % interval" in out


def test_the_user_may_be_on_the_right(recording: Path, tmp_path: Path) -> None:
    """The same call with its channels exchanged has the same turns with --user-channel right."""
    samples, rate = soundfile.read(recording)
    swapped = tmp_path / "swapped.wav"
    soundfile.write(swapped, samples[:, ::-1], rate)
    assert result_of(swapped, "--user-channel", "right")["turns"] == result_of(recording)["turns"]


def test_csv_and_picture_are_written(recording: Path, tmp_path: Path, truth: list[Said]) -> None:
    """The CSV has a row a turn, the SVG is XML, the PNG is a PNG, and each is named on standard error."""
    table, svg, png = tmp_path / "turns.csv", tmp_path / "call.svg", tmp_path / "call.png"
    _, err = run(recording, "--csv", table, "--picture", svg)
    run(recording, "--picture", png)
    assert len(table.read_text("utf-8").splitlines()) == 1 + len(truth)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert str(table) in err
    assert str(svg) in err


def silent_file(tmp_path: Path, samples: NDArray[np.float64], name: str = "call.wav") -> Path:
    """A recording with these samples."""
    path = tmp_path / name
    soundfile.write(path, samples, RATE)
    return path


@pytest.mark.parametrize(
    ("channels", "words"), [(1, "one channel only"), (3, "3 channels")], ids=["mono", "three"]
)
def test_a_file_without_two_sides_is_refused_with_a_remedy(tmp_path: Path, channels: int, words: str) -> None:
    """One channel cannot be told apart, of three it is not known which two: both say what to do."""
    problem = refused(silent_file(tmp_path, np.zeros((800, channels))))
    assert words in problem.what
    assert "ffmpeg" in problem.remedy


def test_a_mixed_down_call_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """The same sound on both channels is refused, with what to record instead."""
    user, agent, _ = clean_call(12)
    mixed = (user + agent) * 0.5
    problem = refused(silent_file(tmp_path, np.stack([mixed, mixed], axis=1)))
    assert "same sound" in problem.what
    assert "channel of its own" in problem.remedy


def test_a_silent_call_is_a_result_without_figures(tmp_path: Path) -> None:
    """A call in which nobody speaks gives empty figures and caveats, not an error."""
    found = result_of(silent_file(tmp_path, np.zeros((RATE, 2))))
    assert found["turns"] == []
    assert found["voice_to_voice_ms"]["p50"] is None
    assert [c["code"] for c in found["caveats"]] == ["user_silent", "agent_silent", "no_turns"]


def test_requests_that_cannot_be_met_are_refused_before_any_work(recording: Path, tmp_path: Path) -> None:
    """A wrong picture format, an absent folder, a folder as file and the recording itself are refused."""
    before = recording.read_bytes()
    assert ".svg or .png" in refused(recording, "--picture", tmp_path / "call.pdf").what
    assert "no folder" in refused(recording, "--csv", tmp_path / "none" / "turns.csv").what
    assert "is a folder" in refused(recording, "--csv", tmp_path).what
    assert "recording itself" in refused(recording, "--csv", recording).what
    assert "no such file" in refused(tmp_path / "none.wav").what
    assert recording.read_bytes() == before


@pytest.mark.parametrize("budget", ["nan", "inf", "-1", "0", "soon"])
def test_a_budget_that_is_no_time_is_refused(recording: Path, budget: str) -> None:
    """A budget must be a positive number of milliseconds."""
    result = CliRunner().invoke(app, [str(recording), "--budget-ms", budget])
    assert result.exit_code == 2 or isinstance(result.exception, VoicebenchError)
    assert result.stdout == ""


def test_a_name_with_terminal_escapes_steers_nothing(recording: Path, tmp_path: Path) -> None:
    """Control characters of a file's name reach neither the terminal nor the JSON nor the picture."""
    odd = tmp_path / "\x1b[31m=é.wav"
    odd.write_bytes(recording.read_bytes())
    svg = tmp_path / "odd.svg"
    out, err = run(odd, "--json", "--picture", svg)
    assert "\x1b[31m" not in out + err + svg.read_text("utf-8")
    assert "é.wav" in json.loads(out)["file"]


def test_importing_the_command_loads_no_heavy_library() -> None:
    """Help and start-up stay quick: numpy, rich and soundfile are loaded only when measuring."""
    heavy = ("numpy", "rich.table", "soundfile")
    code = f"import sys, voicebench.cli.measure; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_why_a_turn_is_uncertain_is_told_in_words(tmp_path: Path) -> None:
    """In loud noise the table says what noise hides, and the summary gives the median over every turn."""
    user, agent, _ = clean_call(11)
    user, agent, _ = with_noise("white", 10)(user, agent, np.random.default_rng(1))
    out, _ = run(silent_file(tmp_path, np.stack([user, agent], axis=1).astype(np.float64)))
    assert "user's end" in out
    assert "user_drowned" not in out
    assert "With every turn the median is" in out


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("user_drowned", "user's end drowned out"),
        ("agent_gated_noise", "agent's onset behind a noise gate"),
        ("recording_ends", "the recording ends"),
        ("user_something_new", "user something new"),
    ],
)
def test_reasons_are_put_in_words(reason: str, text: str) -> None:
    """A reason code is told in words; one that has none is told as it is."""
    assert reason_text(reason) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00.00"), (59.999, "1:00.00"), (65.25, "1:05.25"), (3600, "60:00.00")]
)
def test_times_are_minutes_and_seconds(seconds: float, text: str) -> None:
    """A time is rounded to hundredths, and carries into the minutes."""
    assert clock(seconds) == text
