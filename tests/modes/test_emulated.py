"""The emulator that a run starts for its emulated modes: their published timing, and an end in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes import gone_within, running
from voicebench import emulated
from voicebench.errors import BadRequest
from voicebench.plan.modes import Mode, Published, catalogue

SEED = [
    catalogue()[f"emulated/{name}"]
    for name in ("opus-4.6", "opus-4.6-fast", "gpt-5.3-codex", "gpt-5.3-codex-spark")
]


def own(**fields: Any) -> Mode:
    """An emulated mode of a config."""
    figure = Published(value=50, source="made", assumed=True)
    given = {
        "id": "own/a",
        "kind": "emulated",
        "provider": "x",
        "api": "openai-chat",
        "model": "m",
        "decode_rate_tok_s": figure,
        "ttft_ms": figure,
    }
    return Mode(**{**given, **fields})


def test_a_mode_answers_as_published() -> None:
    """Rate and first text come from the figures; headers and opening events leave before the first text."""
    script = emulated.script_of(catalogue()["emulated/opus-4.6-fast"])
    assert (script.name, script.rate_tok_s, script.first_text_ms) == ("emulated/opus-4.6-fast", 170, 200)
    assert (script.headers_ms, script.preamble_ms, script.served_speed) == (50, 60, "fast")
    assert emulated.script_of(catalogue()["emulated/opus-4.6"]).served_speed == "standard"


def test_further_timing_comes_from_the_row() -> None:
    """`emulation` adds jitter or a burst, and may replace what would be assumed."""
    script = emulated.script_of(own(emulation={"jitter_ms": 2.0, "headers_ms": 1, "tokens_per_event": 3}))
    assert (script.jitter_ms, script.headers_ms, script.tokens_per_event) == (2.0, 1.0, 3)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"decode_rate_tok_s": None}, "decode_rate_tok_s"),
        ({"ttft_ms": None}, "ttft_ms"),
        ({"emulation": {"jiter_ms": 1}}, "jiter_ms"),
        ({"emulation": {"jitter_ms": -1}}, "jitter_ms"),
        ({"emulation": {"replay": "no-such-file.json"}}, "no-such-file.json"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(fields: dict[str, Any], said: str) -> None:
    """A missing figure, an unknown or wrong timing field and a missing recording name mode and field."""
    with pytest.raises(BadRequest, match=said) as caught:
        emulated.check([own(**fields)])
    assert "own/a" in str(caught.value)


def test_only_what_needs_a_server_gets_one() -> None:
    """Live modes, scripted stages and modes with an address of their own are left as they are."""
    live = catalogue()["openai/gpt-6-luna"]
    scripted = own(api="scripted", decode_rate_tok_s=None)
    elsewhere = own(settings={"base_url": "http://127.0.0.1:8123/v1"})
    modes = [live, scripted, elsewhere]
    assert emulated.placed(modes, 5) == tuple(modes)
    emulated.check(modes)
    assert emulated.start(modes, seed=1) is None
    [placed] = emulated.placed([own(api="openai-responses-ws")], 5)
    assert placed.settings == {"base_url": "http://127.0.0.1:5/v1", "model": "own/a"}
    assert placed.model == "m"


def test_it_runs_until_it_is_stopped() -> None:
    """All modes of a run share one process, which is gone when `stop` returns."""
    started = emulated.start([*SEED, catalogue()["openai/gpt-6-luna"]], seed=3)
    assert started is not None
    pid, port = started.process.pid, started.process.port
    assert running(pid)
    assert [mode.settings.get("base_url") for mode in started.modes] == [
        f"http://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}/v1",
        f"http://127.0.0.1:{port}/v1",
        None,
    ]
    assert [mode.id for mode in started.modes[:4]] == [mode.id for mode in SEED]
    started.stop()
    assert not running(pid)
    started.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """`kill -9` of the run leaves no emulator behind: it is gone within 2 s."""
    program = (
        "import sys, time; from voicebench import emulated; from voicebench.plan.modes import catalogue; "
        "started = emulated.start([catalogue()['emulated/opus-4.6']], seed=1); "
        "print(started.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert running(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone_within(pid, 2.0)
