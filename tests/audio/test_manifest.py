"""The manifest of a folder of samples: what it gives, and how its mistakes are told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from voicebench.audio.manifest import Sample, load_manifest
from voicebench.errors import BadRequest

FULL = """\
version: 1
samples:
- id: capital
  file: capital.wav
  transcript: What is the capital of France?
  segments: [[0.4, 1.5], [2, 2.75]]
  voice: someone
  condition: pause
  answers: [Paris]
  language: en
- id: nobody
  file: sub/nobody.wav
  transcript: ""
  segments: []
- id: unknown
  file: unknown ☃.wav
"""


def folder_with(tmp_path: Path, manifest: str | bytes) -> Path:
    """A folder of that manifest and of the files that these tests name."""
    (tmp_path / "sub").mkdir()
    for name in ("capital.wav", "sub/nobody.wav", "unknown ☃.wav"):
        (tmp_path / name).write_bytes(b"sound")
    content = manifest if isinstance(manifest, bytes) else manifest.encode("utf-8")
    (tmp_path / "manifest.yaml").write_bytes(content)
    return tmp_path


def entry(**changes: str) -> str:
    """A manifest of one sample with these keys changed (YAML texts)."""
    keys = {"id": "a", "file": "capital.wav"} | changes
    return "samples:\n- " + "\n  ".join(f"{key}: {value}" for key, value in keys.items()) + "\n"


def refusal(tmp_path: Path, manifest: str | bytes) -> str:
    """The words in which that manifest is refused."""
    with pytest.raises(BadRequest) as caught:
        load_manifest(folder_with(tmp_path, manifest))
    assert "manifest.yaml" in caught.value.what
    return str(caught.value)


def test_a_full_entry_is_read_as_it_stands(tmp_path: Path) -> None:
    """Every key of an entry arrives in the sample, and what follows from them agrees."""
    sample = load_manifest(folder_with(tmp_path, FULL))[0]
    assert sample == Sample(
        id="capital",
        path=tmp_path / "capital.wav",
        transcript="What is the capital of France?",
        segments=((0.4, 1.5), (2.0, 2.75)),
        voice="someone",
        condition="pause",
        answers=("Paris",),
        language="en",
    )
    assert (sample.speech_start_s, sample.speech_end_s) == (0.4, 2.75)
    assert sample.has_speech is True
    assert sample.anchor == "annotated"


def test_silence_is_annotated_and_has_no_end(tmp_path: Path) -> None:
    """An empty list of segments says that nobody speaks."""
    sample = load_manifest(folder_with(tmp_path, FULL))[1]
    assert sample.has_speech is False
    assert (sample.speech_start_s, sample.speech_end_s) == (None, None)
    assert sample.anchor == "annotated"


def test_what_is_left_out_is_unknown(tmp_path: Path) -> None:
    """Without segments and transcript it is unknown whether anyone speaks; the recording is the anchor."""
    sample = load_manifest(folder_with(tmp_path, FULL))[2]
    assert (sample.transcript, sample.segments, sample.has_speech) == (None, None, None)
    assert (sample.voice, sample.condition, sample.language, sample.answers) == (None, None, None, ())
    assert sample.anchor == "waveform"


def test_a_transcript_alone_says_whether_anyone_speaks() -> None:
    """Without segments the transcript decides on speech, but gives no instant."""
    assert Sample("a", Path("a"), transcript="Yes.").has_speech is True
    assert Sample("a", Path("a"), transcript=" ").has_speech is False
    assert Sample("a", Path("a"), transcript="Yes.").speech_end_s is None


def test_an_annotation_beyond_the_recording_is_a_misfit() -> None:
    """Speech that ends after the recording is told; one that ends with it, or is unknown, fits."""
    sample = Sample("a", Path("a"), segments=((0.1, 2.0),))
    assert "2 s" in str(sample.misfit(1.5))
    assert sample.misfit(2.0) is None
    assert Sample("a", Path("a")).misfit(0.1) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "7"),
        ("id", "../a"),
        ("id", "''"),
        ("id", "a/b"),
        ("transcript", "12"),
        ("transcript", "[a]"),
        ("segments", "[0.4, 2.0]"),
        ("segments", "[[0.4]]"),
        ("segments", "[[0.4, 2.0, 3.0]]"),
        ("segments", "[[2.0, 0.4]]"),
        ("segments", "[[1.0, 1.0]]"),
        ("segments", "[[-0.1, 1.0]]"),
        ("segments", "[[0.0, .inf]]"),
        ("segments", "[[.nan, 1.0]]"),
        ("segments", "[[0.5, 1.0], [0.9, 2.0]]"),
        ("segments", "[['0.5', 1.0]]"),
        ("segments", "[[true, 2.0]]"),
        ("segments", f"[[0, 1{'0' * 400}]]"),
        ("voice", "''"),
        ("condition", "3"),
        ("answers", "Paris"),
        ("answers", "[yes]"),
        ("answers", "[7]"),
        ("answers", "['']"),
        ("language", "no"),
        ("language", "English please"),
    ],
)
def test_a_wrong_value_is_told_with_entry_key_value_and_what_is_allowed(
    tmp_path: Path, key: str, value: str
) -> None:
    """The error names the number of the entry and the key, and says what may stand there."""
    said = refusal(tmp_path, entry(**{key: value}))
    assert "sample 1" in said
    assert f"{key} is " in said
    assert "Allowed: " in said


@pytest.mark.parametrize(
    "file",
    [
        "../capital.wav",
        "sub/../../x.wav",
        "/etc/hostname",
        "'sub\\nobody.wav'",
        "'C:capital.wav'",
        '"capital.wav\\0"',
        '"a\\nb.wav"',
        "''",
        ".",
    ],
)
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    """No name leads out of the manifest's folder or holds what names do not hold."""
    said = refusal(tmp_path, entry(file=file))
    assert "sample 1 (a): file is " in said
    assert "Allowed: a path inside the manifest's folder" in said


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Neither a linked file nor a file in a linked folder is taken from outside; a link inside is."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.wav").write_bytes(b"sound")
    (tmp_path / "in").mkdir()
    folder = folder_with(tmp_path / "in", entry(file="link.wav"))
    (folder / "link.wav").symlink_to(tmp_path / "outside" / "x.wav")
    with pytest.raises(BadRequest, match="leads out of the folder"):
        load_manifest(folder)
    (folder / "links").symlink_to(tmp_path / "outside")
    (folder / "manifest.yaml").write_text(entry(file="links/x.wav"))
    with pytest.raises(BadRequest, match="leads out of the folder"):
        load_manifest(folder)
    (folder / "link.wav").unlink()
    (folder / "link.wav").symlink_to("capital.wav")
    (folder / "manifest.yaml").write_text(entry(file="link.wav"))
    assert load_manifest(folder)[0].path == folder / "link.wav"


def test_a_missing_file_is_told_with_the_closest_name(tmp_path: Path) -> None:
    """A slip in a file's name is answered with the name that was meant."""
    said = refusal(tmp_path, entry(file="capitol.wav"))
    assert "does not exist" in said
    assert "Did you mean capital.wav?" in said


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    """A folder or a pipe cannot stand where a recording is meant."""
    assert "not a regular file" in refusal(tmp_path, entry(file="sub"))
    (tmp_path / "capital.wav").unlink()
    os.mkfifo(tmp_path / "capital.wav")
    (tmp_path / "manifest.yaml").write_text(entry())
    with pytest.raises(BadRequest, match="not a regular file"):
        load_manifest(tmp_path)


def test_an_unknown_key_is_told_with_the_closest_one(tmp_path: Path) -> None:
    """A slip in a key's name is not ignored."""
    said = refusal(tmp_path, entry(transcipt="hello"))
    assert "the key 'transcipt' is unknown" in said
    assert "transcript" in said


@pytest.mark.parametrize("key", ["id", "file"])
def test_a_missing_key_is_told(tmp_path: Path, key: str) -> None:
    """An entry without an id or a file says which is missing."""
    lines = [line for line in ("id: a", "file: capital.wav") if not line.startswith(key)]
    assert f"the key {key} is missing" in refusal(tmp_path, f"samples:\n- {lines[0]}\n")


def test_two_samples_of_one_id_are_refused(tmp_path: Path) -> None:
    """The second entry of an id is named."""
    said = refusal(tmp_path, entry() + "- id: a\n  file: sub/nobody.wav\n")
    assert "sample 2" in said
    assert "'a' is taken" in said


def test_silence_with_words_is_refused(tmp_path: Path) -> None:
    """No segments and yet a transcript is a contradiction."""
    assert "nobody speaks" in refusal(tmp_path, entry(segments="[]", transcript="hello"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no list of samples"),
        ("just a text", "no list of samples"),
        ("samples: 3", "no list of samples"),
        ("samples: []", "empty"),
        ("samples:\n- just a text\n", "is not a sample"),
        ("version: 2\n" + entry(), "version is 2"),
        ("colour: red\n" + entry(), "'colour' is unknown"),
        ("samples:\n- id: [unclosed\n", "line"),
        ("samples: !!python/object/apply:os.system ['touch pwned']\n", "not a plain YAML file"),
        ("samples: " + "[" * 3000, "not a plain YAML file"),
        (b"samples:\n- id: \xff\xfe\n", "not UTF-8"),
        ("samples:\n- id: 'a\x07b'\n", "not a plain YAML file"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, content: str | bytes, reason: str) -> None:
    """Anything but a list of samples in plain YAML is told in words, and nothing in it is carried out."""
    assert reason in refusal(tmp_path, content)
    assert not Path("pwned").exists()


def test_a_value_that_unfolds_without_end_is_told_briefly(tmp_path: Path) -> None:
    """Nested references that stand for a billion values cost nothing and are shown short."""
    bomb = "x: &a0 [1, 1]\n"
    levels = "".join(f"- &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    said = refusal(tmp_path, f"version: &a0 [1, 1]\nsamples:\n{levels}- id: a\n  file: *a39\n")
    assert len(said) < 1000
    (tmp_path / "manifest.yaml").write_text(bomb)
    with pytest.raises(BadRequest, match="no list of samples"):
        load_manifest(tmp_path)


def test_no_manifest_and_one_that_is_no_file_are_told(tmp_path: Path) -> None:
    """A folder without a manifest, and a pipe in its place, are refused without waiting."""
    with pytest.raises(BadRequest, match="no such file"):
        load_manifest(tmp_path)
    os.mkfifo(tmp_path / "manifest.yaml")
    with pytest.raises(BadRequest, match="not a regular file"):
        load_manifest(tmp_path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    """A manifest saved by an editor that adds a byte-order mark is read."""
    assert len(load_manifest(folder_with(tmp_path, b"\xef\xbb\xbf" + FULL.encode()))) == 3
