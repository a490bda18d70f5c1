"""A Piper voice that speaks in pieces: the beginning of a sentence sounds before its end has been computed.

Piper's voices are VITS models in one graph: text and durations come first, then a flow and a decoder that
turn frames of 256 samples into sound. The last two look only so far to each side, so a piece with that much
around it comes out as it does in the whole sentence. The first piece costs the same for every sentence.

Needs onnx, and imports it and piper only when a voice is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Run = Callable[[dict[str, Any]], list[Any]]

FLOW_REACH = 32
"""Frames to each side that the flow looks at: four layers of four convolutions over five frames."""
DECODER_REACH = 12
"""Frames to each side that the decoder looks at."""
FIRST_FRAMES = 12
"""Of the first piece: 0.14 s at 22.05 kHz, of which voices leave about 0.05 s silent. Each later one is made
within the time that those before it sound."""
MOST_FRAMES = 192
INPUTS = ("input", "input_lengths", "scales")
LATENT = "/Add_output_0"
MASK = "/Cast_2_output_0"
"""What the flow takes, as Piper's exporter names it."""
CHECKED = ("The quick brown fox jumps over the lazy dog, and then it rests.", "Paris.", "Yes, that is right.")
MOST_APART = 1e-3
"""So much may a sample of the pieces differ from the whole voice's, of full scale 1."""
PEAK = 0.95


@dataclass(frozen=True)
class Pieces:
    """The three parts of a voice. Each is run on arrays by name and gives its outputs in order."""

    front: Run
    flow: Run
    decoder: Run
    decoder_input: str
    hop: int
    """Samples of sound for each frame."""

    def sound(self, inputs: dict[str, Any]) -> Iterator[Floats]:
        """The sound of one sentence in pieces, in [-1, 1] as the voice makes it. Each `next` computes one."""
        latent, mask = self.front(inputs)
        frames = latent.shape[2]
        begin, size = 0, FIRST_FRAMES
        while begin < frames:
            end = begin + size
            if frames - end < FIRST_FRAMES:
                end = frames
            yield self._piece(latent, mask, begin, end)
            begin, size = end, min(2 * size, MOST_FRAMES)

    def _piece(self, latent: Floats, mask: Floats, begin: int, end: int) -> Floats:
        frames = latent.shape[2]
        inner = slice(max(0, begin - DECODER_REACH), min(frames, end + DECODER_REACH))
        outer = slice(max(0, inner.start - FLOW_REACH), min(frames, inner.stop + FLOW_REACH))
        moved = self.flow({LATENT: latent[:, :, outer], MASK: mask[:, :, outer]})[0]
        kept = moved[:, :, inner.start - outer.start : inner.stop - outer.start]
        made: Floats = self.decoder({self.decoder_input: kept})[0].squeeze((0, 1, 2))
        start = (begin - inner.start) * self.hop
        return made[start : start + (end - begin) * self.hop]


def take_apart(path: Path, session: Callable[[bytes], Any]) -> Pieces | None:
    """The parts of the voice at `path`, each opened by `session` from its serialised graph.

    None where the voice is built otherwise (several speakers, another exporter): it then speaks whole.
    """
    import onnx
    from onnx.utils import Extractor

    model = onnx.load(str(path))
    first = next((node for node in model.graph.node if node.name == "/dec/conv_pre/Conv"), None)
    made = {name for node in model.graph.node for name in node.output}
    if (
        first is None
        or not {LATENT, MASK, first.input[0]} <= made
        or tuple(one.name for one in model.graph.input) != INPUTS
    ):
        return None
    joint = first.input[0]
    output = model.graph.output[0].name
    extractor = Extractor(model)
    try:
        cut = (
            extractor.extract_model(list(INPUTS), [LATENT, MASK]),
            extractor.extract_model([LATENT, MASK], [joint]),
            extractor.extract_model([joint], [output]),
        )
        channels = _channels(model, first)
    except Exception:
        # A graph of another shape: the extractor raises what it likes.
        return None
    front, flow, decoder = (_runner(session(part.SerializeToString())) for part in cut)
    samples = decoder({joint: np.zeros((1, channels, 4), dtype=np.float32)})[0].size
    return Pieces(front, flow, decoder, joint, samples // 4)


def _runner(session: Any) -> Run:
    def run(inputs: dict[str, Any]) -> list[Any]:
        return list(session.run(None, inputs))

    return run


def _channels(model: Any, convolution: Any) -> int:
    """How many channels the decoder's first convolution reads."""
    weight = next(one for one in model.graph.initializer if one.name == convolution.input[1])
    return int(weight.dims[1])


def inputs_for(voice: Any, phoneme_ids: list[int], noisy: bool = True) -> dict[str, Any]:
    """The voice's inputs for one sentence; without noise the same sentence always sounds the same."""
    config = voice.config
    scales = [config.noise_scale, config.length_scale, config.noise_w_scale]
    if not noisy:
        scales[0] = scales[2] = 0.0
    return {
        "input": np.asarray([phoneme_ids], dtype=np.int64),
        "input_lengths": np.asarray([len(phoneme_ids)], dtype=np.int64),
        "scales": np.asarray(scales, dtype=np.float32),
    }


def gain_of(voice: Any, pieces: Pieces) -> float | None:
    """By what the voice's sound is multiplied so that it nearly fills the scale; None where the pieces do not
    sound as the whole voice does.

    Piper scales each sentence by its own peak, which nobody knows before its end: here the loudest of a few
    stands for all. Short ones are the loudest.
    """
    peak = 0.0
    for phonemes in (sentence for text in CHECKED for sentence in voice.phonemize(text)):
        inputs = inputs_for(voice, voice.phonemes_to_ids(phonemes), noisy=False)
        whole = voice.session.run(None, inputs)[0].squeeze()
        joined = np.concatenate(list(pieces.sound(inputs)))
        if whole.shape != joined.shape or float(np.abs(whole - joined).max()) > MOST_APART:
            return None
        peak = max(peak, float(np.abs(whole).max()))
    return PEAK / peak if peak > 0.0 else None


def in_pieces(voice: Any, path: Path, session: Callable[[bytes], Any]) -> Any:
    """The voice, speaking in pieces where it can be taken apart; as it is where it cannot."""
    pieces = take_apart(path, session)
    gain = None if pieces is None else gain_of(voice, pieces)
    if pieces is None or gain is None:
        return voice
    return _piecewise_class()(voice, pieces, gain)


def _piecewise_class() -> type[Any]:
    """The subclass, made when piper may be imported."""
    from piper import PiperVoice
    from piper.voice import AudioChunk

    class PiecewiseVoice(PiperVoice):
        """Gives a sentence's sound in several chunks."""

        speaks_in_pieces = True

        def __init__(self, voice: PiperVoice, pieces: Pieces, gain: float) -> None:
            super().__init__(session=None, config=voice.config, download_dir=voice.download_dir)
            self._pieces = pieces
            self._gain = gain

        def synthesize(
            self, text: str, syn_config: Any = None, include_alignments: bool = False
        ) -> Iterator[AudioChunk]:
            """The chunks of `text`, at the configuration's own speed and noise."""
            for phonemes in self.phonemize(text):
                if not phonemes:
                    continue
                ids = self.phonemes_to_ids(phonemes)
                for sound in self._pieces.sound(inputs_for(self, ids)):
                    yield AudioChunk(
                        sample_rate=self.config.sample_rate,
                        sample_width=2,
                        sample_channels=1,
                        audio_float_array=np.clip(sound * self._gain, -1.0, 1.0),
                        phonemes=phonemes,
                        phoneme_ids=ids,
                    )

    return PiecewiseVoice
