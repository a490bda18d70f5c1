"""What a run was made on and with: machine, versions, model files. For `run.json` and reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from voicebench import prompt_loop
from voicebench.clock import NS_PER_MS

PACKAGES = (
    "voicebench-testbed",
    "pipecat-ai",
    "faster-whisper",
    "ctranslate2",
    "piper-tts",
    "onnxruntime",
    "xllamacpp",
    "openai",
    "anthropic",
    "numpy",
)


def versions() -> dict[str, str]:
    """The installed versions of what takes part in a measurement; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The machine: system, processor, cores this process may use, memory in GB; how long a thread may keep
    the interpreter, and the slice of the processor that the calling thread has. Unknown ones are None."""
    slice_ns = prompt_loop.slice_ns()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": _cores(),
        "memory_gb": _memory_gb(),
        "platform": sys.platform,
        "switch_interval_ms": sys.getswitchinterval() * 1000,
        "loop_slice_ms": None if slice_ns is None else slice_ns / NS_PER_MS,
    }


def _cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None
