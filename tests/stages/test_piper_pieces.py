"""A voice that speaks in pieces sounds as it does in one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicebench.models.resolve import resolve_piper
from voicebench.stages.piper_pieces import FIRST_FRAMES, MOST_APART, in_pieces, inputs_for, take_apart
from voicebench.stages.shared import WorkLog
from voicebench.stages.tts_piper import PiperSettings, _service_class, _session, load

TEXT = "Water freezes at zero degrees Celsius, and it boils at one hundred degrees."


@pytest.fixture(scope="module")
def voice() -> Any:
    """The embedded voice, whole."""
    return load(PiperSettings(spin=False), offline=True)


@pytest.mark.models
def test_the_pieces_joined_are_the_whole_sentence(voice: Any) -> None:
    """Without noise every sample of the pieces is the whole voice's, and the first piece is a short one."""
    path = resolve_piper("en_US-joe-medium").model
    assert path is not None
    pieces = take_apart(path, lambda graph: _session(PiperSettings(spin=False), graph))
    assert pieces is not None
    [phonemes] = voice.phonemize(TEXT)
    inputs = inputs_for(voice, voice.phonemes_to_ids(phonemes), noisy=False)
    whole = voice.session.run(None, inputs)[0].squeeze()
    made = list(pieces.sound(inputs))
    assert len(made) > 2
    assert made[0].size == FIRST_FRAMES * 256
    assert np.abs(whole).max() > 0.1
    assert np.abs(np.concatenate(made) - whole).max() < MOST_APART


@pytest.mark.models
async def test_a_voice_that_speaks_whole_though_pieces_were_asked_for_says_so(voice: Any) -> None:
    """The turn is noted, so that the report can tell; a voice in pieces has nothing to tell."""
    for settings, held in (
        (PiperSettings(pieces=True, spin=False), voice),
        (PiperSettings(spin=False), voice),
    ):
        work = WorkLog()
        service = _service_class()(held, settings, work)
        async for _ in service.run_tts("Yes.", "context"):
            break
        assert ("tts_whole_sentences" in work.take()[1]) == settings.pieces


class Spoken:
    """A voice whose sentences come in pieces that were made before."""

    speaks_in_pieces = True
    config = SimpleNamespace(sample_rate=22_050)

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces

    def synthesize(self, text: str) -> Any:
        """The pieces, as Piper gives them."""
        return iter([SimpleNamespace(audio_int16_bytes=piece.tobytes()) for piece in self.pieces])


@pytest.mark.parametrize("silent", [0, 1, 3])
async def test_leading_silence_is_cut_however_many_pieces_it_fills(silent: int) -> None:
    """Pieces that hold nothing but silence are not played before the first sound; a voice that never sounds
    gives what it made."""
    hush = np.zeros(3072, dtype=np.int16)
    tone = (np.sin(np.arange(3072) * 0.3) * 9000).astype(np.int16)
    settings = PiperSettings(pieces=True, trim_leading_silence=True)
    for pieces, least, most in (
        ([*[hush] * silent, tone, hush, tone], 3 * 3072, 3 * 3072 + 2 * 111),
        ([hush] * 2, 2 * 3072, 2 * 3072),
    ):
        service = _service_class()(Spoken(*pieces), settings, WorkLog())
        service._sample_rate = 22_050
        made = b"".join([frame.audio async for frame in service.run_tts("Yes.", "context")])
        assert least <= len(made) // 2 <= most


@pytest.mark.models
def test_sentences_in_pieces_fill_the_scale_and_do_not_overdrive_it() -> None:
    """Short and long sentences sound at one loudness factor, hardly a sample beyond the scale's end."""
    pieces = load(PiperSettings(pieces=True, spin=False), offline=True)
    for text in ("Paris.", TEXT):
        chunks = list(pieces.synthesize(text))
        samples = np.concatenate([chunk.audio_int16_array for chunk in chunks])
        assert len(chunks) > 1
        assert np.abs(samples).max() > 0.3 * 32767
        assert (np.abs(samples) >= 32767).mean() < 0.001


def test_a_voice_of_another_build_speaks_whole(tmp_path: Path) -> None:
    """A graph that is not built as Piper exports it is not taken apart: the voice stays as it is."""
    from onnx import TensorProto, helper, save

    value = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1])
    node = helper.make_node("Identity", ["input"], ["output"])
    path = tmp_path / "voice.onnx"
    save(helper.make_model(helper.make_graph([node], "other", [value], [output])), str(path))
    whole = object()
    assert in_pieces(whole, path, lambda graph: None) is whole
