"""A whole run over scripted stages: every turn is on disk, whatever the files, the stages or a signal do."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.driven import SILENCE, clip, scripted
from tests.processes import children_of, gone_within
from tests.recorded import write_wav
from tests.run_child import TURNS
from voicebench.audio import decode as decode_module
from voicebench.audio.manifest import Sample
from voicebench.bench import COLD
from voicebench.errors import BadRequest, MissingExtra, RunProblem
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder


class Listener:
    """Keeps what a run reports."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.records: list[TurnRecord] = []
        self.warmups: list[TurnRecord] = []

    def opened(self, folder: RunFolder) -> None:
        """The folder is there, and opens."""
        assert not folder.info().complete
        self.told.append("opened")

    def phase(self, text: str) -> None:
        """Something begins."""
        self.told.append(text)

    def begin(self, turns: int) -> None:
        """The measured turns begin."""
        self.told.append(f"begin {turns}")

    def turn(self, record: TurnRecord) -> None:
        """A turn is on disk."""
        self.records.append(record)

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is on disk."""
        self.warmups.append(record)


def spoken(folder: Path, name: str, **more: Any) -> Sample:
    """A sample of one tone that lasts 0.3 s."""
    path = write_wav(folder / f"{name}.wav", clip(0.3))
    return Sample(id=name, path=path, **{"transcript": "what is it", "segments": ((0.0, 0.3),), **more})


def silent(folder: Path, name: str) -> Sample:
    """A sample in which nobody speaks."""
    return Sample(id=name, path=write_wav(folder / f"{name}.wav", SILENCE), transcript="", segments=())


def broken(folder: Path, name: str) -> Sample:
    """A file that is no audio."""
    path = folder / f"{name}.wav"
    path.write_bytes(b"this is a letter, not a recording" * 40)
    return Sample(id=name, path=path, transcript="what is it", segments=((0.0, 0.3),))


async def ran(config: Config, samples: list[Sample], out: Path, **options: Any) -> tuple[RunFolder, Listener]:
    """The folder of a run and what it reported."""
    listener = Listener()
    folder = await run(make_plan(config, samples), RunOptions(out=out, **options), listener)
    return folder, listener


async def test_a_run_writes_every_turn(tmp_path: Path) -> None:
    """Three samples give three records in the order of the plan, a complete run.json, and warm-ups apart."""
    samples = [spoken(tmp_path, name) for name in ("a", "b", "c")]
    config = scripted(warmup_turns=1, seed=3)
    folder, listener = await ran(config, samples, tmp_path / "run")
    info, reading = folder.info(), folder.turns()
    assert info.complete
    assert info.ended_at is not None
    assert [(one.mode, one.sample, one.repeat) for one in info.planned] == [
        (one.mode, one.sample, one.repeat) for one in reading.records
    ]
    assert sorted(one.sample for one in reading.records) == ["a", "b", "c"]
    assert [one.turn for one in reading.records] == [0, 1, 2]
    assert {one.outcome for one in reading.records} == {Outcome.COMPLETED}
    assert {one.run for one in reading.records} == {folder.id}
    assert folder.warmup().records == tuple(listener.warmups)
    assert len(listener.warmups) == 1
    assert list(reading.records) == listener.records
    assert listener.told[0] == "opened"
    assert listener.told[-1] == "begin 3"
    assert Config.model_validate(info.config) == config
    assert info.modes["made/m"].kind == "emulated"
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()]
    assert left == []


async def test_a_file_that_cannot_be_read_fails_its_turn_alone(tmp_path: Path) -> None:
    """Broken and missing files are failed records that name them, silence is no speech, and the run goes
    on to the end; its warm-up speaks the first sample that can be spoken."""
    absent = Sample(id="absent", path=tmp_path / "absent.wav", transcript="x", segments=((0.0, 0.3),))
    beyond = spoken(tmp_path, "beyond", segments=((0.0, 99.0),))
    samples = [broken(tmp_path, "letter"), absent, beyond, silent(tmp_path, "hush"), spoken(tmp_path, "good")]
    folder, _ = await ran(scripted(turn_timeout_s=4, warmup_turns=1), samples, tmp_path / "run")
    assert folder.info().complete
    by_sample = {one.sample: one for one in folder.turns().records}
    assert len(by_sample) == 5
    for name in ("letter", "absent", "beyond"):
        assert by_sample[name].outcome is Outcome.FAILED
        assert name in (by_sample[name].reason or "")
        assert by_sample[name].voice_to_voice_ms is None
    assert by_sample["hush"].outcome is Outcome.NO_SPEECH
    assert by_sample["good"].outcome is Outcome.COMPLETED
    [warmup] = folder.warmup().records
    assert (warmup.sample, warmup.outcome) == ("good", Outcome.COMPLETED)


async def test_a_library_that_a_file_needs_fails_that_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A format whose library is not installed, or a decoder that breaks, is a failed record as well."""
    real = decode_module.decode

    def decode(path: Path) -> Any:
        if path.stem == "video":
            raise MissingExtra("av", "av", "video.wav")
        if path.stem == "odd":
            raise ZeroDivisionError("division by zero")
        return real(path)

    monkeypatch.setattr("voicebench.audio.prepare.decode", decode)
    samples = [spoken(tmp_path, name) for name in ("video", "odd", "good")]
    folder, _ = await ran(scripted(), samples, tmp_path / "run")
    by_sample = {one.sample: one for one in folder.turns().records}
    assert "av" in (by_sample["video"].reason or "")
    assert "ZeroDivisionError" in (by_sample["odd"].reason or "")
    assert by_sample["good"].outcome is Outcome.COMPLETED


async def test_a_stage_that_fails_every_time_does_not_end_the_run(tmp_path: Path) -> None:
    """Each turn of a language model that raises is a record of its own, and the run is complete; a turn
    whose pipeline was built anew after one is marked."""
    config = scripted(llm={"fault": "raise"})
    folder, _ = await ran(config, [spoken(tmp_path, name) for name in "ab"], tmp_path / "run")
    assert folder.info().complete
    records = folder.turns().records
    assert [one.outcome for one in records] == [Outcome.FAILED] * 2
    assert [COLD in one.caveats for one in records] == [False, True]


@pytest.fixture(scope="module")
def two_modes(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of two modes on two samples that keeps no text."""
    folder = tmp_path_factory.mktemp("two-modes")
    base = scripted()
    other = base.own_modes[0].model_copy(update={"id": "made/n"})
    config = base.model_copy(update={"modes": ("made/m", "made/n"), "own_modes": (*base.own_modes, other)})
    samples = [spoken(folder, name) for name in "ab"]
    made, _ = asyncio.run(ran(config, samples, folder / "run", no_text=True))
    return made


def test_two_modes_take_turns_on_each_sample(two_modes: RunFolder) -> None:
    """With two modes each sample is spoken to both, one after the other."""
    records = two_modes.turns().records
    assert [one.outcome for one in records] == [Outcome.COMPLETED] * 4
    for first, second in (records[:2], records[2:]):
        assert first.sample == second.sample
        assert {first.mode, second.mode} == {"made/m", "made/n"}


def test_text_can_be_left_out(two_modes: RunFolder) -> None:
    """Without text no transcript and no reply is in the folder, and the figures are."""
    for record in two_modes.turns().records:
        assert (record.transcript, record.reply, record.first_clause) == (None, None, None)
        assert record.voice_to_voice_ms is not None
    for file in two_modes.path.glob("*.jsonl"):
        assert "Paris" not in file.read_text("utf-8")


async def test_a_pipeline_that_cannot_be_built_is_told_in_words(tmp_path: Path) -> None:
    """A library that raises while a stage is built ends the run with a sentence; the folder opens."""
    config = scripted()
    plan = make_plan(config, [spoken(tmp_path, "a")])
    asr = replace(plan.specs.asr, plugin=replace(plan.specs.asr.plugin, build=lambda *_: 1 // 0))
    plan = replace(plan, specs=replace(plan.specs, asr=asr))
    with pytest.raises(RunProblem, match=r"made/m cannot be built: ZeroDivisionError"):
        await run(plan, RunOptions(out=tmp_path / "run"), Listener())
    folder = RunFolder.open(tmp_path / "run")
    assert not folder.info().complete
    assert folder.turns().records == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"modes": ("made/x",)}, "unknown mode 'made/x'"),
        ({"samples_per_mode": {"made/x": 3}}, "unknown mode 'made/x'"),
    ],
)
def test_a_plan_refuses_what_it_does_not_know(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    """A mode that nobody knows is refused before anything is loaded, also where it is only limited."""
    config = scripted().model_copy(update=changes)
    with pytest.raises(BadRequest, match=words):
        make_plan(config, [spoken(tmp_path, "a")], where="c.yaml")


def test_a_plan_without_samples_is_refused() -> None:
    """There is nothing to run without a sample."""
    with pytest.raises(BadRequest, match="no samples"):
        make_plan(scripted(), [])


def test_a_setting_named_kind_is_refused_in_words(tmp_path: Path) -> None:
    """A mode whose settings hold the key `kind` does not end in a traceback."""
    mode = Mode(id="m", kind="local", provider="x", api="scripted", model="y", settings={"kind": "other"})
    config = scripted().model_copy(update={"modes": ("m",), "own_modes": (mode,)})
    with pytest.raises(BadRequest, match="kind"):
        make_plan(config, [spoken(tmp_path, "a")])


@contextmanager
def a_run(out: Path, llm: str) -> Iterator[subprocess.Popen[str]]:
    """A run of six turns in a process of its own."""
    root = Path(__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.run_child", str(out), llm],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], word: str, times: int = 1) -> None:
    """Read the run's lines until so many of them begin with `word`."""
    assert process.stdout is not None
    for line in process.stdout:
        times -= line.startswith(word)
        if times == 0:
            return
    assert process.stderr is not None
    pytest.fail(f"the run ended before {word!r}: {process.stderr.read()[-2000:]}")


def check_left(out: Path, at_least: int) -> None:
    """The folder opens, is not complete, and holds every turn that was reported."""
    folder = RunFolder.open(out)
    assert not folder.info().complete
    reading = folder.turns()
    assert len(reading.records) >= at_least
    assert len(reading.records) < TURNS
    assert reading.problems == ()
    assert reading.torn_lines <= 1


def test_a_run_that_is_interrupted_ends_in_order(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a turn ends with status 130, marked partial, with all finished turns."""
    out = tmp_path / "run"
    with a_run(out, "scripted") as process:
        read_until(process, "turn", 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    check_left(out, 2)
    assert RunFolder.open(out).info().ended_at is not None


def test_a_run_that_is_killed_keeps_every_finished_turn_and_can_be_resumed(tmp_path: Path) -> None:
    """`kill -9` in the middle leaves a folder that opens with all turns that were over; the turns that it
    lacks are run by the next one, and no turn twice."""
    out = tmp_path / "run"
    with a_run(out, "scripted") as process:
        read_until(process, "turn", 3)
        process.kill()
    check_left(out, 3)
    samples = [spoken(tmp_path, f"s{number}") for number in range(TURNS)]
    plan = make_plan(scripted(turn_timeout_s=10), samples)
    asyncio.run(run(plan, RunOptions(resume=out), Listener()))
    folder = RunFolder.open(out)
    assert folder.info().complete
    keys = [(one.mode, one.sample, one.repeat) for one in folder.turns().records]
    assert len(keys) == len(set(keys)) == TURNS


@pytest.mark.models
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_no_server_outlives_its_run(tmp_path: Path, ending: signal.Signals) -> None:
    """However a run ends, the server of its local model is gone two seconds later."""
    out = tmp_path / "run"
    with a_run(out, "llama") as process:
        read_until(process, "turn", 1)
        servers = children_of(process.pid)
        assert servers
        process.send_signal(ending)
        process.wait(10)
        assert all(gone_within(pid, 2.0) for pid in servers)
    check_left(out, 1)


@pytest.mark.models
def test_a_run_that_is_interrupted_while_it_loads_leaves_no_server(tmp_path: Path) -> None:
    """Ctrl-C while the local model is being loaded ends the run and the server."""
    out = tmp_path / "run"
    with a_run(out, "llama") as process:
        read_until(process, "open")
        process.send_signal(signal.SIGINT)
        servers = children_of(process.pid)
        assert process.wait(30) == 130
        assert all(gone_within(pid, 2.0) for pid in servers)
    assert not RunFolder.open(out).info().complete
