"""Where the cache lies on each platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from voicebench.errors import ModelFileProblem
from voicebench.models.places import cache_root


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own."""
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_variable_wins(tmp_path: Path) -> None:
    """VOICEBENCH_CACHE is the folder itself, before every other place."""
    chosen = {"VOICEBENCH_CACHE": str(tmp_path / "here"), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    assert cache_root(chosen, "linux") == tmp_path / "here"


def test_a_relative_variable_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder counts from the working folder, and ~ is the home folder."""
    monkeypatch.chdir(tmp_path)
    assert cache_root({"VOICEBENCH_CACHE": "a/../b"}, "linux") == tmp_path / "b"
    assert cache_root({"VOICEBENCH_CACHE": "~/c"}, "linux") == tmp_path / "c"


def test_an_absolute_xdg_folder_is_used(tmp_path: Path) -> None:
    """An absolute XDG_CACHE_HOME gets a voicebench folder; a relative or empty one is ignored."""
    assert cache_root({"XDG_CACHE_HOME": str(tmp_path / "x")}, "linux") == tmp_path / "x" / "voicebench"
    for ignored in ("relative", ""):
        assert cache_root({"XDG_CACHE_HOME": ignored}, "linux") == tmp_path / ".cache" / "voicebench"


def test_each_platform_has_its_place(tmp_path: Path) -> None:
    """Without a variable the cache lies where the platform keeps caches."""
    assert cache_root({"VOICEBENCH_CACHE": ""}, "linux") == tmp_path / ".cache" / "voicebench"
    assert cache_root({}, "darwin") == tmp_path / "Library" / "Caches" / "voicebench"
    assert cache_root({}, "win32") == tmp_path / "AppData" / "Local" / "voicebench" / "Cache"
    local = {"LOCALAPPDATA": str(tmp_path / "L")}
    assert cache_root(local, "win32") == tmp_path / "L" / "voicebench" / "Cache"


def test_no_home_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no home folder and no variable, the error names the variable."""

    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(ModelFileProblem, match="VOICEBENCH_CACHE"):
        cache_root({}, "linux")
