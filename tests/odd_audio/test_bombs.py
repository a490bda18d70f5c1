"""Small files of hours: decoding stops at the bound while it runs, whatever the coding."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voicebench.audio.decode import decode
from voicebench.errors import AudioProblem


@pytest.mark.parametrize(("name", "subtype"), [("a.flac", "PCM_16"), ("a.opus", "OPUS"), ("a.ogg", "VORBIS")])
def test_much_sound_in_a_small_file_is_refused_at_the_bound(tmp_path: Path, name: str, subtype: str) -> None:
    """An hour (lossy: six minutes) of silence in a small file is refused at the bound."""
    path = tmp_path / name
    container = "FLAC" if name == "a.flac" else "OGG"
    with soundfile.SoundFile(path, "w", 8_000, 1, subtype, format=container) as file:
        for _ in range(6 if container == "OGG" else 60):
            file.write(np.zeros(60 * 8_000, np.float32))
    assert path.stat().st_size < 360 * 8_000 * 4 / 30
    for bound in ({"max_seconds": 10.0}, {"max_bytes": 1 << 19}):
        begun = time.process_time()
        with pytest.raises(AudioProblem, match=r"longer than 10 s|more than 0 MiB") as caught:
            decode(path, **bound)
        assert name in caught.value.what
        assert caught.value.remedy
        assert time.process_time() - begun < 2.0
