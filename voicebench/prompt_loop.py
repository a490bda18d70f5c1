"""Let the event loop's thread run as soon as it wakes, beside the models that compute in this process.

A thread that wakes on a busy core waits on Linux for the slice of the one that runs there, some ms; one that
asks for a short slice is put before it, and gets no more of the core for that. No privilege is needed.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

SLICE_NS = 100_000
"""The shortest slice that Linux grants: 0.1 ms."""
SWITCH_S = 0.0005
"""So long may a thread keep the interpreter when another one asks for it; Python's own is 5 ms."""

_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275)}
"""The numbers of sched_setattr and sched_getattr, which the C library has no functions for, by machine."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""The kernel's `struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period."""
_OTHER = 0
"""The policy of threads without a real-time priority."""
_RESET_ON_FORK = 0x01
"""Threads and processes that are begun by this one get the usual slice."""


def prompt_loop() -> bool:
    """Ask for a short slice for the calling thread, and for short turns of all threads at the interpreter.

    Was the slice granted? Not on another system than Linux, without effect before its version 6.12, and not
    asked for by a thread of negative niceness, which those that it begins would lose. The thread's niceness
    and share of the processor stay what they were. Raises nothing.
    """
    sys.setswitchinterval(SWITCH_S)
    return _ask_for_slice(SLICE_NS)


def slice_ns() -> int | None:
    """The slice of the calling thread in ns; None where the system does not tell."""
    found = _attributes()
    return found[5] or None if found is not None and found[1] == _OTHER else None


def _ask_for_slice(ns: int) -> bool:
    found = _attributes()
    if found is None or found[1] != _OTHER or found[3] < 0:
        return False
    _, policy, flags, nice, priority, _, _, _ = found
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, flags | _RESET_ON_FORK, nice, priority, ns, 0, 0)
    return _call(0, ctypes.create_string_buffer(wanted, _ATTRIBUTES.size), 0)


def _attributes() -> tuple[int, ...] | None:
    answer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if not _call(1, answer, _ATTRIBUTES.size, 0):
        return None
    found: tuple[int, ...] = _ATTRIBUTES.unpack(answer.raw)
    return found


def _call(which: int, attributes: ctypes.Array[ctypes.c_char], *more: int) -> bool:
    """One of the two calls for the calling thread; False where there is none, or it is refused."""
    numbers = _CALLS.get(platform.machine())
    if sys.platform != "linux" or numbers is None or struct.calcsize("P") != 8:
        return False
    rest = [ctypes.c_long(value) for value in more]
    number = ctypes.c_long(numbers[which])
    return int(ctypes.CDLL(None).syscall(number, ctypes.c_long(0), attributes, *rest)) == 0
