"""What the stages of a run share: made once, ended once, and the log of work inside a stage."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from voicebench.clock import now_ns
from voicebench.errors import RunProblem
from voicebench.stages.shared import Shared, WorkLog


def test_a_model_is_made_once_for_all_sessions() -> None:
    """Two sessions that build at the same time in two threads share what is made for one key."""
    shared, made = Shared(), [0]
    both = threading.Barrier(2)

    def make() -> object:
        made[0] += 1
        return object()

    def build() -> object:
        both.wait(5)
        return shared.get(("whisper", "tiny"), make)

    with ThreadPoolExecutor(2) as threads:
        first, second = (one.result(5) for one in [threads.submit(build), threads.submit(build)])
    assert first is second
    assert made == [1]
    assert shared.get(("whisper", "base"), object) is not first


def test_a_model_that_could_not_be_made_is_tried_again() -> None:
    """A failure is not kept: the next session makes its own attempt."""
    shared = Shared()
    with pytest.raises(ZeroDivisionError):
        shared.get(("x",), lambda: 1 // 0)
    assert shared.get(("x",), lambda: 5) == 5


def test_closing_ends_what_was_started_last_one_first() -> None:
    """Servers end in the reverse order of their start, each once, however often it is closed."""
    shared, ended = Shared(), []
    shared.on_close(lambda: ended.append("first"))
    shared.on_close(lambda: ended.append("second"))
    shared.close()
    shared.close()
    assert ended == ["second", "first"]


def test_nothing_is_started_after_the_end() -> None:
    """A pipeline that is still being built when its run ends starts no server that nobody would stop."""
    shared, started = Shared(), []
    shared.close()
    with pytest.raises(RunProblem):
        shared.get(("llama.cpp", "x"), lambda: started.append("a server"))
    assert started == []


def test_what_was_started_too_late_is_ended_at_once() -> None:
    """A server that comes up while its run is being ended does not outlive it."""
    shared, ended = Shared(), []
    shared.close()
    shared.on_close(lambda: ended.append("late"))
    assert ended == ["late"]


def test_one_server_that_cannot_be_ended_leaves_no_other_running() -> None:
    """A stop that raises does not keep the others from being stopped."""
    shared, ended = Shared(), []

    def fail() -> None:
        raise OSError("already gone")

    shared.on_close(lambda: ended.append("first"))
    shared.on_close(fail)
    with pytest.raises(OSError, match="already gone"):
        shared.close()
    assert ended == ["first"]


def test_work_is_taken_turn_by_turn() -> None:
    """What stages report from any thread is handed over once; the last note of a name counts."""
    work, start = WorkLog(), now_ns()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: work.add("asr", start, start + number), range(100)))
    work.note("language", "de")
    work.note("language", "en")
    items, notes = work.take()
    assert sorted(item.end_ns - item.start_ns for item in items) == list(range(100))
    assert notes == {"language": "en"}
    assert work.take() == ([], {})


def test_work_without_an_end_ends_now() -> None:
    """Work that is reported when it is over needs no end."""
    work, start = WorkLog(), now_ns()
    work.add("tts_total", start)
    [[item], _] = work.take()
    assert start <= item.end_ns <= now_ns()


def test_what_takes_long_is_made_beside_other_things() -> None:
    """A model that is being loaded keeps no other from it, and whoever asks for it gets that one."""
    shared, other_is_made = Shared(), threading.Event()

    def slow() -> object:
        assert other_is_made.wait(5)
        return object()

    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(shared.get, ("slow",), slow) for _ in range(2))
        shared.get(("other",), object)
        other_is_made.set()
        assert first.result(5) is second.result(5)


def test_a_model_that_is_loaded_when_the_run_ends_is_not_waited_for() -> None:
    """Closing does not wait for a load, and what that load starts is ended at once."""
    shared, ended = Shared(), []
    begun = threading.Event()

    def serve() -> object:
        begun.set()
        assert shared.closing.wait(5)
        shared.on_close(lambda: ended.append("server"))
        return object()

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(shared.get, ("server",), serve)
        assert begun.wait(5)
        shared.close()
        asked.result(5)
    assert ended == ["server"]
