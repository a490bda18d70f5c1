"""The run folder: private, never written over, readable after a kill."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.turns.made import made
from voicebench.errors import BadRequest, RunProblem
from voicebench.turns.run_folder import RunFolder, RunInfo


class CountedCall:
    """A system call whose `fail_at`-th use fails with an I/O error."""

    def __init__(self, real: Callable[..., object], fail_at: int) -> None:
        self.real, self.fail_at, self.count = real, fail_at, 0

    def __call__(self, *arguments: object) -> object:
        self.count += 1
        if self.count == self.fail_at:
            raise OSError(5, "Input/output error")
        return self.real(*arguments)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_run_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    """Without a name, the folder is <UTC time>-<short id> under the root, different each time."""
    first, second = (RunFolder.create(root=tmp_path / "runs") for _ in range(2))
    assert first.path.parent == tmp_path / "runs"
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", first.path.name)
    assert first.path.name == first.id != second.id


def test_everything_in_it_is_private(tmp_path: Path) -> None:
    """The folder is 0700 and its files 0600, also where the named folder was there before."""
    (tmp_path / "out").mkdir(mode=0o755)
    run = RunFolder.create(tmp_path / "out")
    run.start([])
    run.journal().close()
    run.warmup_journal().close()
    run.write("report.json", b"{}")
    assert mode(run.path) == mode(run.audio_folder()) == 0o700
    files = {path.name: mode(path) for path in run.path.iterdir() if path.is_file()}
    assert files == dict.fromkeys(("run.json", "turns.jsonl", "warmup.jsonl", "report.json"), 0o600)


@pytest.mark.parametrize("kind", ["full", "file"])
def test_a_place_that_is_taken_is_refused(tmp_path: Path, kind: str) -> None:
    """A folder with something in it, or a file, is a wrong request and stays untouched."""
    place = tmp_path / "out"
    if kind == "full":
        place.mkdir()
        (place / "turns.jsonl").write_text("old", encoding="utf-8")
    else:
        place.write_text("old", encoding="utf-8")
    with pytest.raises(BadRequest, match="--out"):
        RunFolder.create(place)
    assert (place / "turns.jsonl" if kind == "full" else place).read_text(encoding="utf-8") == "old"


def test_a_run_is_complete_only_after_it_was_finished(tmp_path: Path) -> None:
    """run.json says complete=false from the start, and true with an end once the run is finished."""
    run = RunFolder.create(tmp_path / "out")
    config = {"a": Path("x\udcff"), "b": float("inf")}
    run.start([{"mode": "m", "sample": "s", "repeat": 0}], config=config)
    begun = RunFolder.open(run.path).info()
    assert (begun.complete, begun.ended_at, begun.config) == (False, None, {"a": "x\ufffd", "b": None})
    assert [(entry.mode, entry.sample, entry.repeat) for entry in begun.planned] == [("m", "s", 0)]
    run.journal().close()
    run.update(noise_floor_ms=4.5, noise_floor_reason=None)
    run.finish(complete=True)
    ended = RunFolder.open(run.path).info()
    assert (ended.complete, ended.noise_floor_ms) == (True, 4.5)
    assert ended.ended_at is not None
    assert ended.ended_at >= ended.started_at
    assert ended.started_at == begun.started_at


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_failing_disk_never_leaves_a_run_marked_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whichever call of the last write fails, the error is raised and run.json is whole, not complete."""
    for nth in range(1, 5):
        run = RunFolder.create(tmp_path / f"{call}{nth}")
        run.start([])
        calls = CountedCall(getattr(os, call), fail_at=nth)
        with monkeypatch.context() as patch:
            patch.setattr(os, call, calls)
            try:
                run.finish(complete=True)
            except RunProblem as problem:
                told = str(problem)
            else:
                told = ""
        failed = calls.count >= nth
        assert ("Input/output error" in told) is failed
        assert run.info().complete is not failed


def test_a_run_that_was_killed_before_its_first_turn_opens(tmp_path: Path) -> None:
    """A folder with run.json alone is a run without turns."""
    run = RunFolder.create(tmp_path / "out")
    run.start([])
    opened = RunFolder.open(run.path)
    assert opened.id == run.id
    assert opened.turns().records == opened.warmup().records == ()


def test_a_killed_run_opens_with_its_turns(tmp_path: Path) -> None:
    """Turns that were written before a kill are there, and the run is not complete."""
    run = RunFolder.create(tmp_path / "out")
    run.start([])
    with run.journal() as journal:
        journal.append(made(0))
    with (run.path / "turns.jsonl").open("ab") as file:
        file.write(b'{"run":')
    reading = RunFolder.open(run.path).turns()
    assert ([record.turn for record in reading.records], reading.torn_lines) == ([0], 1)


def test_what_is_wrong_with_a_folder_is_told(tmp_path: Path) -> None:
    """Each way in which a folder is no run is told with the path and a remedy."""
    with pytest.raises(RunProblem, match=r"no run folder .*gone"):
        RunFolder.open(tmp_path / "gone")
    with pytest.raises(RunProblem, match=r"holds no run\.json") as empty:
        RunFolder.open(tmp_path)
    assert "voicebench batch" in empty.value.remedy
    (tmp_path / "turns.jsonl").touch()
    with pytest.raises(RunProblem, match=r"put back the run\.json"):
        RunFolder.open(tmp_path)
    with pytest.raises(RunProblem, match="is a file"):
        RunFolder.open(tmp_path / "turns.jsonl")
    for text in ("", '{"id": "x"', "[]", '{"id": "x"}', '{"id": NaN}', '{"id": "x", "started_at": 3}'):
        (tmp_path / "run.json").write_text(text, encoding="utf-8")
        with pytest.raises(RunProblem, match=r"run\.json is damaged") as damaged:
            RunFolder.open(tmp_path)
        assert "Put back" in damaged.value.remedy


def test_a_finished_run_without_its_journal_is_told(tmp_path: Path) -> None:
    """A complete run whose turns.jsonl is gone is an error, not a run without turns."""
    run = RunFolder.create(tmp_path / "out")
    run.start([])
    run.finish(complete=True)
    with pytest.raises(RunProblem, match=r"holds no turns\.jsonl"):
        RunFolder.open(run.path)


def test_older_and_newer_run_files_open(tmp_path: Path) -> None:
    """A run.json with only what every version wrote opens; what a newer one added survives a rewrite."""
    run = RunFolder.create(tmp_path / "out")
    old = {"id": run.id, "started_at": "2026-01-02T03:04:05Z"}
    (run.path / "run.json").write_text(json.dumps(old), encoding="utf-8")
    assert RunFolder.open(run.path).info().planned == ()
    new = {**old, "schema": 7, "mood": [1], "modes": {"m": {"kind": "local", "tint": 2}}}
    (run.path / "run.json").write_text(json.dumps(new), encoding="utf-8")
    run.update(noise_floor_ms=1.0)
    kept = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    assert (kept["schema"], kept["mood"], kept["modes"]["m"]["tint"]) == (7, [1], 2)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "/x"])
def test_a_file_is_written_only_into_the_folder_itself(tmp_path: Path, name: str) -> None:
    """A name that leads elsewhere is refused."""
    run = RunFolder.create(tmp_path / "out")
    with pytest.raises(ValueError, match="names no file"):
        run.write(name, b"")


def test_run_info_speaks_of_the_noise_floor_only_when_it_was_measured() -> None:
    """Without a measurement the noise floor is null and a reason stands beside it."""
    info = RunInfo(id="x", started_at="2026-01-02T03:04:05Z").to_dict()
    assert info["noise_floor_ms"] is None
    assert info["noise_floor_reason"]
    assert info["schema"] == 1
