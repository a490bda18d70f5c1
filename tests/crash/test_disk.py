"""A disk that is full or broken, at every single call: always told, no run."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import scripted_config
from tests.crash.failing import Disk
from tests.crash.quick_runs import no_pipelines
from tests.pipeline.driven import clip
from tests.recorded import write_wav
from voicebench.__main__ import main
from voicebench.errors import ExitStatus
from voicebench.turns.run_folder import RUN_FILE, RunFolder

TURNS = 3


def batch(folder: Path, disk: Disk, *more: str) -> int:
    """`voicebench batch` on that disk; its exit status."""
    with no_pipelines(), disk.in_place():
        return main(
            [
                "batch",
                *(str(folder / f"s{number}.wav") for number in range(TURNS)),
                *("--config", str(folder / "scripted.yaml"), "--out", str(disk.root), "--json", *more),
            ]
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three recordings and a configuration."""
    for number in range(TURNS):
        write_wav(tmp_path / f"s{number}.wav", clip(0.3))
    scripted_config(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "stays"), [(errno.EIO, False), (errno.ENOSPC, True)], ids=["EIO once", "ENOSPC from then on"]
)
def test_whichever_call_fails_it_is_told_and_nothing_is_called_complete(
    folder: Path, capsys: pytest.CaptureFixture[str], code: int, stays: bool
) -> None:
    """The n-th open, write, fsync, rename or mkdir fails, for n = 1, 2, ... until the run passes (every third
    where all later ones fail too): exit status 2, the reason and the remedy in words, each whole turn
    readable, and `complete` only with all turns."""
    number = 0
    while True:
        number += 3 if stays else 1
        disk = Disk(folder / f"run-{number}", number, code, stays)
        status = batch(folder, disk)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        if not disk.failed:
            break
        where = f"call {number}, {disk.calls[number - 1]}"
        assert status == ExitStatus.BAD_REQUEST, where
        assert os.strerror(code) in told.err, where
        assert "--out" in told.err, where
        assert told.out == "", where
        if not (disk.root / RUN_FILE).exists():
            continue
        run = RunFolder.open(disk.root)
        reading = run.turns()
        assert reading.problems == (), where
        assert reading.torn_lines <= 1, where
        if run.info().complete:
            assert len(reading.records) == TURNS, where
    # The run whose failing call was never reached did everything.
    assert json.loads(told.out)["run"]["complete"] is True
    assert number > 20
    assert {call.partition(" ")[0] for call in disk.calls} >= {"open", "write", "fsync", "replace"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 kB; skips, and says so, where none can be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("NOT TRIED: a really full disk takes the right to mount one (run as root)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_runs_full_ends_the_run_in_words(
    folder: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a disk with room for some turns the run ends with status 2 and a remedy, is not marked complete,
    and every turn that is on the disk can be read."""
    (small_disk / "filling").write_bytes(b"x" * 40_960)
    status = batch(folder, Disk(small_disk / "run", 0, 0), "--repeats", "40")
    told = capsys.readouterr()
    assert status == ExitStatus.BAD_REQUEST
    assert "No space left on device" in told.err
    assert "--out" in told.err
    assert "Traceback" not in told.err
    run = RunFolder.open(small_disk / "run")
    assert not run.info().complete
    reading = run.turns()
    assert 0 < len(reading.records) < 40 * TURNS
    assert reading.problems == ()
