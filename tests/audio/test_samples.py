"""From files and folders on the command line to samples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from voicebench.audio.samples import EXTENSIONS, default_folder, find_samples
from voicebench.errors import BadRequest

MANIFEST = """\
samples:
- {id: second, file: b.wav, transcript: Two., segments: [[0.1, 0.9]]}
- {id: first, file: a.wav, transcript: One.}
"""


def touch(folder: Path, *names: str) -> Path:
    """Make these files, of no sound at all, in `folder`."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"no sound")
    return folder


def annotated(folder: Path) -> Path:
    """A folder with a manifest of two samples and a third file that it does not list."""
    touch(folder, "a.wav", "b.wav", "c.wav")
    (folder / "manifest.yaml").write_text(MANIFEST)
    return folder


def ids(*paths: Path) -> list[str]:
    """The ids of the samples that these paths stand for."""
    return [sample.id for sample in find_samples(paths)]


def test_a_folder_with_a_manifest_stands_for_its_samples(tmp_path: Path) -> None:
    """Only what the manifest lists, in its order; the manifest's own path means the same."""
    annotated(tmp_path)
    assert ids(tmp_path) == ["second", "first"]
    assert ids(tmp_path / "manifest.yaml") == ["second", "first"]
    assert find_samples([tmp_path])[0].anchor == "annotated"


def test_a_folder_without_one_stands_for_its_audio_files(tmp_path: Path) -> None:
    """Audio files of all extensions, in any case and depth, sorted; no others, and none that are hidden."""
    touch(tmp_path, "z.WAV", "a.flac", "sub/deep/c.Mp3", "sub/b.ogg")
    touch(tmp_path, "notes.txt", ".hidden.wav", ".git/d.wav", "._a.flac", "wav")
    found = find_samples([tmp_path])
    assert [sample.id for sample in found] == ["a.flac", "z.WAV", "sub__b.ogg", "sub__deep__c.Mp3"]
    assert [sample.path for sample in found][2] == tmp_path / "sub" / "b.ogg"
    assert all(sample.segments is None and sample.transcript is None for sample in found)
    assert {sample.anchor for sample in found} == {"waveform"}


def test_every_extension_is_looked_for(tmp_path: Path) -> None:
    """All the formats that the decoder reads are found by their usual names."""
    names = ["wav", "flac", "ogg", "opus", "mp3", "m4a", "aac", "webm", "mp4"]
    names += ["aiff", "aif", "au", "amr", "wma", "mka", "3gp"]
    touch(tmp_path, *(f"a.{name}" for name in names))
    assert len(find_samples([tmp_path])) == len(names) == len(EXTENSIONS)


def test_a_file_without_a_manifest_stands_for_itself(tmp_path: Path) -> None:
    """A named file is taken whatever its extension, and nothing is known of it."""
    (sample,) = find_samples([touch(tmp_path, "call.bin") / "call.bin"])
    assert (sample.id, sample.path, sample.has_speech) == ("call.bin", tmp_path / "call.bin", None)


def test_a_file_in_a_manifests_folder_keeps_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file named by itself has the manifest's annotation, by whatever path it is named."""
    annotated(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "b.wav", Path("b.wav"), Path("./b.wav")):
        (sample,) = find_samples([path])
        assert (sample.id, sample.path, sample.speech_end_s) == ("second", path, 0.9)
    (unlisted,) = find_samples([Path("c.wav")])
    assert (unlisted.id, unlisted.anchor) == ("c.wav", "waveform")


def test_a_manifest_above_a_file_counts_as_well(tmp_path: Path) -> None:
    """The entry may lie in a folder above the file's own."""
    touch(tmp_path, "sub/a.wav")
    (tmp_path / "manifest.yaml").write_text("samples:\n- {id: deep, file: sub/a.wav}\n")
    assert ids(tmp_path / "sub" / "a.wav") == ["deep"]


def test_a_manifest_of_something_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    """A file of that name without samples does not keep a file beside or below it from being read."""
    touch(tmp_path, "sub/a.wav", "b.wav")
    (tmp_path / "manifest.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    assert ids(tmp_path / "b.wav", tmp_path / "sub") == ["b.wav", "a.wav"]


def test_a_broken_manifest_is_not_passed_over(tmp_path: Path) -> None:
    """A file beside a manifest that cannot be read is not silently measured without its annotation."""
    touch(tmp_path, "a.wav")
    (tmp_path / "manifest.yaml").write_text("samples:\n- {id: a, file: [\n")
    with pytest.raises(BadRequest, match=r"manifest\.yaml"):
        find_samples([tmp_path / "a.wav"])


def test_an_annotated_folder_inside_a_plain_one_keeps_its_manifest(tmp_path: Path) -> None:
    """Walking a folder takes a manifest that it meets on its way."""
    touch(tmp_path, "x.wav")
    (tmp_path / "set").mkdir()
    annotated(tmp_path / "set")
    assert ids(tmp_path) == ["x.wav", "second", "first"]


def test_each_file_is_taken_once(tmp_path: Path) -> None:
    """A file that is named twice, or also lies in a named folder, is one sample."""
    annotated(tmp_path)
    assert ids(tmp_path / "b.wav", tmp_path, tmp_path / "a.wav", tmp_path / ".") == ["second", "first"]
    plain = touch(tmp_path / "plain", "a.wav", "sub/b.wav")
    assert ids(plain, plain / "sub", plain / "a.wav") == ["a.wav", "sub__b.wav"]


def test_one_recording_under_two_ids_is_two_samples(tmp_path: Path) -> None:
    """A manifest may ask two questions of one file."""
    touch(tmp_path, "a.wav")
    (tmp_path / "manifest.yaml").write_text(
        "samples:\n- {id: one, file: a.wav, answers: [x]}\n- {id: two, file: a.wav, answers: ['y']}\n"
    )
    assert ids(tmp_path) == ["one", "two"]
    assert ids(tmp_path / "a.wav") == ["one", "two"]


def test_ids_are_never_alike(tmp_path: Path) -> None:
    """Files of one name in several folders, and names that look alike as ids, get ids of their own."""
    touch(tmp_path, "one/a.wav", "two/a.wav", "two/x/a.wav", "three/two/a.wav")
    found = ids(tmp_path / "one", tmp_path / "two", tmp_path / "three" / "two" / "a.wav")
    assert found == ["a.wav", "two__a.wav", "x__a.wav", "a.wav~2"]
    touch(tmp_path, "four/s__a.wav", "four/s/a.wav")
    assert len(set(ids(tmp_path / "four"))) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_ids_are_safe_as_file_names_and_as_text(tmp_path: Path) -> None:
    """Whatever a file is called, its id has no separator, control character, stray byte or leading dot."""
    for name in (b"-i.wav", b"a\nb.wav", b"\x1b[2J.wav", b"\xff.wav", b"back\\slash.wav", "☃ é.wav".encode()):
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    found = find_samples([tmp_path])
    assert len(found) == 6
    for sample in found:
        assert sample.path.is_file()
        assert sample.id.isprintable()
        assert not set(sample.id) & set("/\\\0")
        assert not sample.id.startswith(".")
        sample.id.encode("utf-8")
    assert "☃ é.wav" in {sample.id for sample in found}


def test_the_same_paths_give_the_same_samples(tmp_path: Path) -> None:
    """The order does not depend on the order in which the system lists the files."""
    touch(tmp_path, *(f"{name}/{name}{number}.wav" for name in "cab" for number in (10, 2, 1)))
    first = ids(tmp_path)
    assert first == ids(tmp_path)
    assert first[:3] == ["a__a1.wav", "a__a10.wav", "a__a2.wav"]


def test_what_cannot_be_decoded_is_still_a_sample(tmp_path: Path) -> None:
    """A broken file, a dead link in a folder and a pipe are samples: their turns fail, the others do not."""
    touch(tmp_path, "broken.wav")
    (tmp_path / "dead.wav").symlink_to("gone.wav")
    os.mkfifo(tmp_path / "pipe.wav")
    assert ids(tmp_path) == ["broken.wav", "dead.wav", "pipe.wav"]
    assert ids(tmp_path / "pipe.wav") == ["pipe.wav"]


def test_a_path_that_does_not_exist_is_told_with_the_closest_name(tmp_path: Path) -> None:
    """A slip in a name is answered with the name that was meant."""
    touch(tmp_path, "question.wav")
    with pytest.raises(BadRequest, match=r"Did you mean question\.wav\?") as caught:
        find_samples([tmp_path / "qestion.wav"])
    assert "there is no such file or folder" in caught.value.what


@pytest.mark.parametrize("name", ["nowhere/a.wav", "file/a.wav", "nul\0.wav"])
def test_a_path_that_cannot_be_is_told(tmp_path: Path, name: str) -> None:
    """A missing folder, a path through a file and a NUL are refused in words."""
    touch(tmp_path, "file")
    with pytest.raises(BadRequest):
        find_samples([tmp_path / name])


def test_a_folder_without_audio_says_what_was_looked_for(tmp_path: Path) -> None:
    """The error lists the extensions."""
    touch(tmp_path, "notes.txt")
    with pytest.raises(BadRequest) as caught:
        find_samples([tmp_path])
    assert all(extension in caught.value.remedy for extension in EXTENSIONS)


def test_no_paths_are_no_samples() -> None:
    """Nothing asked, nothing given: the caller chooses the default folder."""
    assert find_samples([]) == ()


def test_links_to_folders_are_not_followed_in_circles(tmp_path: Path) -> None:
    """A folder that links to itself is walked once."""
    touch(tmp_path, "a.wav")
    (tmp_path / "again").symlink_to(tmp_path)
    assert ids(tmp_path) == ["a.wav"]


def test_the_samples_here_come_before_the_project_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`audio_samples` in the current folder is the default, else the one of the source checkout."""
    monkeypatch.chdir(tmp_path)
    assert (default_folder() / "manifest.yaml").is_file()
    (tmp_path / "audio_samples").mkdir()
    assert default_folder().resolve() == (tmp_path / "audio_samples").resolve()


def test_without_any_default_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed without the source checkout, the error says to name files or folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("voicebench.audio.samples.__file__", str(tmp_path / "x" / "y" / "z" / "samples.py"))
    with pytest.raises(BadRequest, match="Name files or folders"):
        default_folder()


def test_finding_samples_loads_no_audio_library() -> None:
    """Planning a run needs neither numpy nor a decoder."""
    code = "import sys, voicebench.audio.samples; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "soundfile", "soxr", "av", "pipecat"} & set(loaded.split())
