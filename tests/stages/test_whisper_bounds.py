"""Whisper's work on one segment is bounded and told: tokens, attempts, windows, time, language."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.driven import scripted
from tests.stages.made_whisper import STAMP, MadeWhisper, Reply, tokens_of
from tests.test_runner import Listener, spoken
from voicebench.analysis.report import build_report
from voicebench.clock import NS_PER_S
from voicebench.errors import BadRequest
from voicebench.export import csv_rows, report_json
from voicebench.plan.config import PluginSpec
from voicebench.runner import RunOptions, make_plan, run
from voicebench.stages import asr_whisper, whisper_bounds
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.whisper_bounds import Attempts, OutOfTime, most_tokens

RATE = 16_000
ASKED = "what is the capital of france"
SIX_SECONDS = np.zeros(6 * RATE, dtype=np.int16).tobytes()


def repeats(temperature: float) -> Reply:
    """The same word for as long as it may: what Whisper makes of noise."""
    return tokens_of("yes") * 448, -0.2, 0.1


def improbable(temperature: float) -> Reply:
    """Words of which the network is not sure."""
    return tokens_of(ASKED), -3.0, 0.1


def clear_when_warm(temperature: float) -> Reply:
    """A repetition at first, and the words that were said at any other temperature."""
    return (tokens_of(ASKED), -0.2, 0.1) if temperature else repeats(temperature)


def stands_still(temperature: float) -> Reply:
    """Time stamps that say: the first 20 ms are done, go on from there."""
    stamps = [STAMP, *tokens_of("yes"), STAMP + 1, STAMP + 1]
    return stamps, -0.2, 0.1


async def transcribed(model: MadeWhisper, audio: bytes, **settings: Any) -> tuple[str, dict[str, Any]]:
    """What the service on that model makes of a segment, and what it notes of the turn."""
    work = WorkLog()
    service = asr_whisper._service_class()(model, WhisperSettings(**settings), work)
    found = [frame.text async for frame in service.run_stt(audio)]
    return " ".join(found), work.take()[1]


@pytest.mark.parametrize("temperatures", [(0.0,), (0.0, 0.2, 0.4), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)])
@pytest.mark.parametrize("reply", [repeats, improbable])
async def test_a_segment_is_tried_at_most_once_a_temperature(
    temperatures: tuple[float, ...], reply: Callable[[float], Reply]
) -> None:
    """However wrong each result looks, there are as many attempts as temperatures, and that is noted."""
    model = MadeWhisper(reply)
    _, notes = await transcribed(model, SIX_SECONDS, temperatures=temperatures)
    assert model.network.temperatures == list(temperatures)
    again = {"asr_fallback": temperatures[-1]} if len(temperatures) > 1 else {}
    assert {name: value for name, value in notes.items() if name.startswith("asr")} == again


@pytest.mark.parametrize("window", ["full", "speech"])
@pytest.mark.parametrize(("multilingual", "a_second"), [(False, 10), (True, 25)])
async def test_no_attempt_gives_more_than_could_have_been_said(
    window: str, multilingual: bool, a_second: int
) -> None:
    """Each attempt at 6 s of audio is allowed the tokens of 6 s of fast speech, not those of 30."""
    model = MadeWhisper(repeats, multilingual)
    await transcribed(model, SIX_SECONDS, window=window)
    assert max(model.network.most_tokens) <= 16 + 6 * a_second
    assert min(model.network.most_tokens) >= 6 * 6


def test_the_longest_sequence_of_a_model_is_kept_to() -> None:
    """Long speech in a script of many tokens asks for no more than the model can give."""
    assert most_tokens(30.0, multilingual=True, longest=448) <= 448 - 5
    assert most_tokens(90.0, multilingual=False, longest=448) == most_tokens(
        30.0, multilingual=False, longest=448
    )


async def test_a_result_that_is_right_at_once_is_not_tried_again() -> None:
    """One attempt, no note of a fallback, and the words."""
    model = MadeWhisper(lambda temperature: (tokens_of(ASKED), -0.2, 0.1))
    text, notes = await transcribed(model, SIX_SECONDS)
    assert text == ASKED
    assert model.network.temperatures == [0.0]
    assert notes == {"language": "en"}


async def test_windows_that_never_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each window covers 20 ms of 6 s, work ends the audio's length and the patience later."""
    clock = [1_000 * NS_PER_S]
    monkeypatch.setattr(whisper_bounds, "now_ns", lambda: clock[0])
    model = MadeWhisper(stands_still)

    def takes_a_second() -> None:
        clock[0] += NS_PER_S

    model.network.on_attempt = takes_a_second
    text, notes = await transcribed(model, SIX_SECONDS, patience_secs=4.0)
    # 300 windows would take 300 s.
    assert clock[0] - 1_000 * NS_PER_S == 11 * NS_PER_S
    assert notes["asr_out_of_time"] == 11
    assert text == " ".join(["yes"] * 11)


async def test_slow_attempts_are_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt of 8 s at one second of audio is not repeated at each temperature."""
    clock = [0]
    monkeypatch.setattr(whisper_bounds, "now_ns", lambda: clock[0])
    model = MadeWhisper(repeats)

    def takes_long() -> None:
        clock[0] += 8 * NS_PER_S

    model.network.on_attempt = takes_long
    _, notes = await transcribed(model, SIX_SECONDS[: 2 * RATE])
    assert model.network.temperatures == [0.0]
    assert "asr_out_of_time" in notes
    assert "asr_fallback" not in notes


def test_the_first_attempt_is_always_made() -> None:
    """One attempt comes first even out of time; a further window is refused; no temperature is an error."""
    attempts = Attempts((0.0, 0.5), -1.0)
    assert list(attempts) == [0.0]
    assert attempts.cut
    with pytest.raises(OutOfTime):
        list(attempts)
    with pytest.raises(ValueError, match="temperature"):
        Attempts((), 1.0)


async def test_a_fallback_of_what_is_dropped_is_noted() -> None:
    """A segment that is no speech gives no text; that it was decoded twice is told all the same."""
    model = MadeWhisper(lambda t: (tokens_of(ASKED), -0.2, 0.9) if t else repeats(t))
    text, notes = await transcribed(model, SIX_SECONDS)
    assert text == ""
    assert notes["asr_fallback"] == 0.2


@pytest.mark.parametrize(
    ("multilingual", "language", "noted"),
    [
        (True, None, {"language": "de", "language_probability": 0.83}),
        (True, "en", {"language": "en"}),
        (True, "de", {"language": "de"}),
        (False, "en", {"language": "en"}),
        (False, None, {"language": "en"}),
    ],
)
@pytest.mark.parametrize("window", ["full", "speech"])
async def test_a_language_is_detected_only_where_none_is_named(
    multilingual: bool, language: str | None, noted: dict[str, Any], window: str
) -> None:
    """A named language is used and has no probability; a detected one is told with its own."""
    model = MadeWhisper(lambda temperature: (tokens_of(ASKED), -0.2, 0.1), multilingual)
    text, notes = await transcribed(model, SIX_SECONDS, language=language, window=window)
    assert text == ASKED
    assert notes == noted


@pytest.mark.parametrize(
    ("multilingual", "language", "remedy"),
    [(False, "de", "English only"), (True, "xx", "detected"), (True, "en-US", "detected")],
)
def test_a_language_that_the_model_does_not_know_is_refused(
    monkeypatch: pytest.MonkeyPatch, multilingual: bool, language: str, remedy: str
) -> None:
    """German on a model for English, or a code that is none, is an error and not an English transcript."""
    monkeypatch.setattr(asr_whisper, "load", lambda *_: MadeWhisper(repeats, multilingual))
    with pytest.raises(BadRequest, match=f"does not know '{language}'") as caught:
        asr_whisper.build(WhisperSettings(language=language), Shared(), WorkLog())
    assert remedy in caught.value.remedy


async def test_fallback_and_language_reach_record_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that was decoded twice, in a language that was detected, says so in every form of the report."""
    monkeypatch.setattr(asr_whisper, "load", lambda *_: MadeWhisper(clear_when_warm, multilingual=True))
    config = scripted().model_copy(
        update={"asr": PluginSpec.model_validate({"kind": "whisper", "language": None})}
    )
    plan = make_plan(config, [spoken(tmp_path, "one")])
    folder = await run(plan, RunOptions(out=tmp_path / "run"), Listener())
    [turn] = folder.turns().records
    assert (turn.transcript, turn.language, turn.language_probability) == (ASKED, "de", 0.83)
    assert "asr_fallback" in turn.caveats
    report = build_report(folder.info(), [turn])
    assert "tried again at another temperature: 1." in report_json.export(report, [turn]).decode()
    lines = (tmp_path / "run" / "turns.jsonl").read_text("utf-8").splitlines()
    rows = [
        json.loads(lines[-1]),
        *csv.DictReader(csv_rows.export(report, [turn]).decode("utf-8-sig").splitlines()),
    ]
    assert [(row["language"], float(row["language_probability"])) for row in rows] == [("de", 0.83)] * 2
