"""A machine without PortAudio, as a container is: recordings are measured, and live says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import scripted_config, voicebench

YES = Path(__file__).parents[2] / "audio_samples" / "yes.wav"
LIBRARY = "raise OSError('PortAudio library not found')\n"
PACKAGE = "raise ImportError('no such package')\n"


def without(folder: Path, line: str) -> str:
    """A folder for PYTHONPATH whose sounddevice cannot be imported, for the reason in `line`."""
    (folder / "hidden").mkdir()
    (folder / "hidden" / "sounddevice.py").write_text(line, "utf-8")
    return str(folder / "hidden")


@pytest.mark.parametrize(
    ("line", "more", "remedy"),
    [
        (LIBRARY, (), "apt-get install libportaudio2"),
        (PACKAGE, (), "pip install 'voicebench-testbed[live]'"),
        (LIBRARY, ("--list-devices",), "apt-get install libportaudio2"),
    ],
)
def test_live_says_what_to_install(line: str, more: tuple[str, ...], remedy: str, tmp_path: Path) -> None:
    """Without the library or its package the command ends with status 2 and the line that installs it, and
    leaves no run folder."""
    config = scripted_config(tmp_path)
    hidden = without(tmp_path, line)
    done = voicebench("live", "--config", config, "--out", "run", *more, cwd=tmp_path, PYTHONPATH=hidden)
    assert done.returncode == 2, done.stderr
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_recordings_are_measured_all_the_same(tmp_path: Path) -> None:
    """A batch over recordings needs neither: it ends with status 0 and its report."""
    hidden = without(tmp_path, LIBRARY)
    config = scripted_config(tmp_path)
    done = voicebench("batch", YES, "--config", config, "--out", "run", cwd=tmp_path, PYTHONPATH=hidden)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.json").is_file()
