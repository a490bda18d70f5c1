"""Recorded streams are replayed at exactly the recorded instants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.readers import Clients, seen_chat
from voicebench.emulator import asked as asking
from voicebench.emulator import replay as replays
from voicebench.emulator.plan import Plan, make
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.emulator.replay import Replay
from voicebench.emulator.timing import TimingScript
from voicebench.emulator.tokens import count
from voicebench.errors import BadRequest

TEXTS = Replay(
    ((12.5, "Bon"), (13.0, "jour, "), (40.25, "ça va 😀"), (40.25, "?")), headers_ms=3.0, preamble_ms=4.5
)


def planned(replay: Replay) -> Plan:
    """The plan of a replayed reply."""
    body = {"model": "tape", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    return make(TimingScript("tape", replay=replay), asking.read("chat", body), None, 0, 0)


def test_recorded_text_is_replayed_to_the_nanosecond() -> None:
    """Each delta has its recorded text at its recorded instant; the tokens are those of the whole text."""
    plan = planned(TEXTS)
    assert [(delta.at_ns, delta.text) for delta in plan.text] == [
        (12_500_000, "Bon"),
        (13_000_000, "jour, "),
        (40_250_000, "ça va 😀"),
        (40_250_000, "?"),
    ]
    assert (plan.headers_ns, plan.preamble_ns, plan.end_ns) == (3_000_000, 4_500_000, 40_250_000)
    assert plan.usage.text == count("Bonjour, ça va 😀?")


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_recorded_counts_are_replayed_with_made_up_text(unit: str) -> None:
    """Where only counts were recorded, each delta holds that many characters or tokens at its instant."""
    sizes = (3, 1, 12, 40)
    plan = planned(Replay(tuple((10.0 * index, size) for index, size in enumerate(sizes)), unit))
    assert [delta.at_ns for delta in plan.text] == [0, 10_000_000, 20_000_000, 30_000_000]
    if unit == "characters":
        assert [len(delta.text) for delta in plan.text] == list(sizes)
    else:
        assert [delta.tokens for delta in plan.text] == list(sizes)


def test_files_are_read_back_unchanged(tmp_path: Path) -> None:
    """write and read give the same replay, in the documented format."""
    path = tmp_path / "tape.json"
    replays.write(path, TEXTS)
    assert replays.read(path) == TEXTS
    assert json.loads(path.read_text(encoding="utf-8"))["deltas"][0] == [12.5, "Bon"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "version"),
        ({"unit": "words"}, "words"),
        ({"deltas": []}, "no deltas"),
        ({"deltas": [[2, "a"], [1, "b"]]}, "delta 1"),
        ({"deltas": [[1, 5]]}, "delta 0"),
        ({"deltas": [[1]]}, "pairs"),
        ({"unit": "tokens", "deltas": [[1, 0]]}, "delta 0"),
        ({"headers_ms": 9}, "headers_ms"),
        ({"tempo": 1}, "tempo"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A file that is no replay is refused by its name and what is wrong in it."""
    path = tmp_path / "tape.json"
    data = {"format": "voicebench-replay", "version": 1, "unit": "text", "deltas": [[1, "a"]], **change}
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(BadRequest, match=said) as caught:
        replays.read(path)
    assert str(path) in caught.value.what


def test_a_log_record_becomes_a_replay(clients: Clients, emulator: EmulatorProcess) -> None:
    """What the write log says of a reply can be served again: same text, at the instants of writing."""
    seen = clients.stream("chat", question="How many hours are there in a day?")
    record = emulator.record(seen.request)
    replay = replays.from_log(record)
    written = [
        event["after_ns"] - record["received_ns"] for event in record["events"] if event["kind"] == "text"
    ]
    assert [delta.at_ns for delta in planned(replay).text] == written
    assert planned(replay).reply == seen.text


def test_a_replay_is_served() -> None:
    """A script with a recorded stream serves its deltas as they were cut, and plans the recorded instants."""
    import openai

    with start(scripts={"tape": TimingScript("tape", replay=TEXTS)}) as emulator:
        with openai.OpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=0) as client:
            stream = client.chat.completions.create(
                model="tape", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            with stream:
                seen = seen_chat(stream)
        record = emulator.record(emulator.requests()[0])
    assert seen.deltas == [text for _, text in TEXTS.deltas]
    due = [event["due_ns"] - record["received_ns"] for event in record["events"] if event["kind"] == "text"]
    assert due == [12_500_000, 13_000_000, 40_250_000, 40_250_000]
