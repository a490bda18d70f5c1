"""Files of any content: a configuration, a manifest, a journal, a recording. Read, or refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.audio.wav_bytes import chunk, fmt, pcm, riff
from tests.fuzz.how_much import examples
from tests.turns.made import made
from voicebench.audio.decode import decode
from voicebench.audio.manifest import load_manifest
from voicebench.errors import VoicebenchError
from voicebench.plan.config import Config, load_config
from voicebench.turns.journal import journal_line, read_journal

KEYS = [*Config.model_fields, "samples", "id", "file", "segments", "version", "kind", "x"]
ODD = st.sampled_from(
    ["", "\x00", "\ud800".encode("utf-16", "surrogatepass").decode("latin1"), "../x", "☃", "-"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | ODD
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
YAML_TEXTS = TREES.map(lambda tree: yaml.safe_dump(tree).encode()) | st.binary(max_size=60)


def _or_words(read: Any, *given_: Any) -> None:
    """Call `read`; the one thing that it may raise is an error in words."""
    said = "nothing"
    try:
        read(*given_)
    except VoicebenchError as error:
        said = error.what
    assert said


@examples(60)
@given(YAML_TEXTS)
def test_any_configuration_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever a configuration holds, it is one, or an error says what is wrong with it."""
    (tmp_path / "config.yaml").write_bytes(content)
    _or_words(load_config, tmp_path / "config.yaml")


@examples(60)
@given(YAML_TEXTS | TREES.map(lambda tree: yaml.safe_dump({"samples": [tree]}).encode()))
def test_any_manifest_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever a manifest holds, it is one, or an error says what is wrong with it."""
    (tmp_path / "manifest.yaml").write_bytes(content)
    _or_words(load_manifest, tmp_path)


@examples(60)
@given(
    st.lists(st.binary(max_size=40) | TREES.map(lambda tree: json.dumps(tree).encode()), max_size=4),
    st.dictionaries(st.sampled_from([*type(made(0)).model_fields]), TREES, max_size=3),
)
def test_any_journal_is_read(tmp_path: Path, lines: list[bytes], changes: dict[str, Any]) -> None:
    """Lines of any content, and a record with any value in any field, take no whole turn along."""
    whole = journal_line(made(7))
    damaged = json.dumps({**json.loads(whole), **changes}).encode()
    path = tmp_path / "turns.jsonl"
    path.write_bytes(b"\n".join([whole, *lines, damaged, whole, b""]))
    found = read_journal(path)
    assert [one for one in found.records if one == made(7)][:2]
    assert len([one for one in found.records if one.turn == 7]) >= 2


HEADS = st.sampled_from(
    [
        *(b"RIFF....WAVE", b"fLaC", b"OggS", b"ID3\x04", b"\xff\xfb\x90", b"\x1a\x45\xdf\xa3", b"#!AMR\n"),
        *(b"....ftypM4A ", b"FORM....AIFF", b".snd", b"caff", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", b""),
    ]
)


@examples(120)
@given(HEADS, st.binary(max_size=200))
def test_any_bytes_are_a_clip_or_refused_by_name(tmp_path: Path, head: bytes, rest: bytes) -> None:
    """Behind the first bytes of each format anything may follow."""
    path = tmp_path / "odd.bin"
    path.write_bytes(head + rest)
    _or_words(lambda: decode(path, max_seconds=5, max_bytes=1 << 20))


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 400))
def test_any_wav_header_is_bounded(tmp_path: Path, size: int, channels: int, rate: int, cut: int) -> None:
    """Whatever length, channels and rate a header claims and wherever the file ends, decoding is bounded."""
    raw = bytearray(riff(fmt(), chunk(b"data", pcm(np.full(100, 0.1, np.float32)), size=size), size=size))
    raw[22:24], raw[24:28] = channels.to_bytes(2, "little"), rate.to_bytes(4, "little")
    path = tmp_path / "odd.wav"
    path.write_bytes(raw[: max(1, len(raw) - cut)])

    def read() -> None:
        clip = decode(path, max_seconds=5, max_bytes=1 << 20)
        assert np.isfinite(clip.samples).all()
        assert clip.samples.nbytes <= 1 << 20

    _or_words(read)
