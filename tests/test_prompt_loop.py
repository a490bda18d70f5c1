"""The event loop's thread asks to run as soon as it wakes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from voicebench import prompt_loop

Found = TypeVar("Found")


@pytest.fixture(autouse=True)
def switch_interval() -> Iterator[None]:
    """Each test leaves the interpreter's switch interval as it was."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def in_thread(work: Callable[[], Found]) -> Found:
    """What `work` gives in a thread of its own, which ends with it."""
    found: list[Found] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_only_the_asking_thread_gets_the_short_slice() -> None:
    """The slice and no niceness changes, and a thread that is begun later has the usual one."""

    def ask() -> tuple[bool, int | None, int | None, int, int]:
        nice = os.nice(0) if hasattr(os, "nice") else 0
        granted = prompt_loop.prompt_loop()
        own, later = prompt_loop.slice_ns(), in_thread(prompt_loop.slice_ns)
        return granted, own, later, nice, os.nice(0) if hasattr(os, "nice") else 0

    before = in_thread(prompt_loop.slice_ns)
    granted, own, later, nice, nice_after = in_thread(ask)
    assert sys.getswitchinterval() == pytest.approx(prompt_loop.SWITCH_S)
    assert nice == nice_after
    assert later == before
    if before is None:
        assert own is None
    else:
        assert (granted, own) == (True, prompt_loop.SLICE_NS)


@pytest.mark.parametrize(("asked", "told"), [("sys.platform", "darwin"), ("platform.machine", lambda: "new")])
def test_a_system_without_it_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, asked: str, told: str | Callable[[], str]
) -> None:
    """On another machine or system nothing is asked for and nothing is raised."""
    monkeypatch.setattr(asked, told)
    assert in_thread(prompt_loop.prompt_loop) is False
    assert in_thread(prompt_loop.slice_ns) is None
