"""The fuzzing of tests/fuzz with a hundred times the examples, other ones each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.how_much import LONG

ROOM = Path(__file__).parents[1] / "fuzz"


@pytest.mark.parametrize("file", sorted(path.name for path in ROOM.glob("test_*.py")))
def test_many_more_examples(file: str) -> None:
    """Each test of the room holds for a hundred times as many examples."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", ROOM / file],
        cwd=ROOM.parents[1],
        env={**os.environ, LONG: "1"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    print(done.stdout.splitlines()[-1])
