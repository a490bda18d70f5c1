"""What an SDK builds at its first use is built before anything is measured."""

from __future__ import annotations

import asyncio

import pytest

from voicebench.stages import llm_warm


@pytest.mark.parametrize("path", llm_warm.PATHS)
def test_every_path_reads_its_canned_stream(path: str) -> None:
    """The canned stream goes through each SDK's own path without an error, and opens no connection."""
    llm_warm.warm(path)
    assert llm_warm.failures[path] is None


async def test_it_may_be_called_beside_a_running_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that runs already is no obstacle, and a second call does nothing."""
    ran = []

    async def canned() -> None:
        ran.append(asyncio.get_running_loop())

    monkeypatch.setattr(llm_warm, "PATHS", {"made": canned})
    llm_warm.warm("made")
    llm_warm.warm("made")
    assert len(ran) == 1
    assert ran[0] is not asyncio.get_running_loop()


def test_a_path_that_fails_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK that has changed leaves its first request cold, and says why on request."""

    async def canned() -> None:
        raise ValueError("changed")

    monkeypatch.setattr(llm_warm, "PATHS", {"broken": canned})
    llm_warm.warm("broken")
    assert isinstance(llm_warm.failures["broken"], ValueError)
