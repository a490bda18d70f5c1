"""What a Piper voice needs beside its own files is missed when it is loaded, before any turn."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from voicebench.errors import ModelFileProblem
from voicebench.models.resolve import resolve_piper
from voicebench.stages import tts_piper
from voicebench.stages.tts_piper import PHONEME_TABLES, PiperSettings

pytestmark = pytest.mark.models


@pytest.mark.parametrize("lost", PHONEME_TABLES)
def test_phoneme_data_that_is_not_whole_is_told_and_ends_no_process(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of its tables espeak-ng would end the whole process with status 1: the file is named."""
    import piper

    for name in PHONEME_TABLES:
        if name != lost:
            (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(tts_piper, "_session", lambda *_: None)
    monkeypatch.setattr(piper, "PiperVoice", partial(piper.PiperVoice, espeak_data_dir=tmp_path))
    with pytest.raises(ModelFileProblem, match=lost) as caught:
        tts_piper.load(PiperSettings(pieces=False), offline=True)
    assert "piper-tts" in caught.value.remedy


def test_a_voice_of_a_language_without_phonemes_is_told(tmp_path: Path) -> None:
    """A voice whose language espeak-ng does not know is refused with its path, not at its first sentence."""
    embedded = resolve_piper(PiperSettings().voice).model
    assert embedded is not None
    voice = tmp_path / "nowhere.onnx"
    shutil.copyfile(embedded, voice)
    facts = json.loads(Path(f"{embedded}.json").read_text("utf-8"))
    facts["espeak"]["voice"] = "xx-nowhere"
    Path(f"{voice}.json").write_text(json.dumps(facts), "utf-8")
    with pytest.raises(ModelFileProblem, match=r"nowhere\.onnx.*xx-nowhere"):
        tts_piper.load(PiperSettings(voice=str(voice)), offline=True)


def test_a_whole_voice_is_loaded() -> None:
    """The embedded voice passes."""
    assert tts_piper.load(PiperSettings(), offline=True).config.sample_rate > 0
