"""Piper on this machine: pipecat's service with the voice shared between sessions, at its native rate.

piper-tts is GPL-3.0; it is imported only where this kind is asked for.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from pydantic import Field

from voicebench.clock import now_ns
from voicebench.errors import ModelFileProblem
from voicebench.models.resolve import PiperSource, resolve_piper
from voicebench.plan.config import Settings
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.piper_pieces import in_pieces
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import TTS_IDLE_S, Shared, WorkLog


class PiperSettings(Settings):
    """Which voice, and how many threads it may use."""

    voice: str = "en_US-joe-medium"
    """A catalogue name, an .onnx with its .onnx.json beside it, or a name for Piper's own download."""
    threads: int = Field(2, ge=1, le=64)
    spin: bool = True
    """May its threads wait for each other by spinning? On a machine with few cores that takes time from the
    other stages, when the voice is done as well; without it each step of the voice takes a little longer."""
    pieces: bool = False
    """Give a sentence's sound in pieces, the first 0.14 s of it as soon as they are made, where the voice's
    graph can be taken apart; one whose graph cannot speaks whole sentences, and the report says so. The
    loudness is then one factor for all sentences, in place of each one's own peak."""
    trim_leading_silence: bool = False
    """Cut the silence (about 45 ms) that voices begin with; 5 ms before the first sound are kept."""


def needs(settings: PiperSettings) -> Needs:
    """piper-tts, and the embedded voice where that is the one."""
    source = resolve_piper(settings.voice)
    libraries = (("piper", "local"), *((("onnx", "local"),) if settings.pieces else ()))
    return Needs(libraries=libraries, models=(source.model_id,) if source.model_id else ())


def build(settings: PiperSettings, shared: Shared, work: WorkLog) -> Any:
    """A pipecat TTS service on the run's shared voice; its `native_rate` is the voice's own, in Hz."""
    return _service_class()(_shared_voice(settings, shared), settings, work)


def _shared_voice(settings: PiperSettings, shared: Shared) -> Any:
    return shared.get(
        ("piper", settings.voice, settings.threads, settings.spin, settings.pieces),
        lambda: load(settings, shared.offline),
    )


def load(settings: PiperSettings, offline: bool) -> Any:
    """The voice, from the cache, a file, or Piper's own download.

    Raises ModelFileProblem where it cannot be had or read.
    """
    from piper import PiperVoice
    from piper.config import PiperConfig

    source = resolve_piper(settings.voice)
    path = source.model or _download(source, offline)
    try:
        config = PiperConfig.from_dict(json.loads(Path(f"{path}.json").read_text("utf-8")))
        voice = PiperVoice(
            config=config, session=_session(settings, str(path)), download_dir=Path(path).parent
        )
        _check_phonemes(voice)
        if settings.pieces:
            return in_pieces(voice, Path(path), lambda graph: _session(settings, graph))
    except Exception as error:
        raise ModelFileProblem(
            f"The Piper voice {path} cannot be loaded: {error}",
            "Fetch it again or name another; phoneme data comes with the package piper-tts.",
        ) from error
    return voice


PHONEME_TABLES = ("phontab", "phonindex", "phondata", "intonations")
"""Without these espeak-ng does not raise: it ends the process."""


def _check_phonemes(voice: Any) -> None:
    """Turn one word into the voice's phonemes, so that what is missing for it is told before any turn.

    Raises FileNotFoundError where espeak-ng's data is not whole, and what espeak-ng raises for a language
    that it does not know.
    """
    if voice.config.phoneme_type == "espeak":
        folder = Path(voice.espeak_data_dir)
        missing = [name for name in PHONEME_TABLES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"espeak-ng's phoneme data lacks {', '.join(missing)} in {folder}")
    if not any(voice.phonemize("yes")):
        raise ValueError("it has no phonemes for a plain word")


def _session(settings: PiperSettings, model: str | bytes) -> Any:
    """ONNX Runtime's session on a file or a serialised graph, with the threads that the settings allow."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if settings.spin else "0")
    return onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])


def _download(source: PiperSource, offline: bool) -> Path:
    """The voice by Piper's own download, from the cache where it was downloaded before."""
    from piper.download_voices import download_voice

    assert source.download_folder is not None
    name, folder = str(source.library_name), source.download_folder
    path = folder / f"{name}.onnx"
    if path.is_file() and Path(f"{path}.json").is_file():
        return path
    if offline:
        raise ModelFileProblem(
            f"The Piper voice {name!r} is not in {folder}, and the run is offline.",
            "Run once without --offline, or name an .onnx file.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        download_voice(name, folder)
    except Exception as error:
        raise ModelFileProblem(
            f"Piper could not download the voice {name!r}: {error}",
            "Check the name and the network, or name the path of an .onnx file.",
        ) from error
    return path


KEPT_MS = 5


def trimmed(audio: bytes, sample_rate: int) -> bytes | None:
    """16-bit mono PCM without its leading silence, by the presence rule; None where nothing sounds."""
    import numpy as np

    from voicebench.audio.presence import first_onset

    samples = np.frombuffer(audio, dtype=np.int16)
    onset = first_onset(samples.astype(np.float32) / 32768.0, sample_rate)
    if onset is None:
        return None
    return samples[max(0, onset - sample_rate * KEPT_MS // 1000) :].tobytes()


def _service_class() -> Any:
    """The subclass, made when pipecat may be imported."""
    hush_pipecat()
    from pipecat.frames.frames import Frame, TTSAudioRawFrame
    from pipecat.services.piper.tts import PiperTTSService
    from pipecat.services.tts_service import TTSService

    class SharedPiper(PiperTTSService):
        """Speaks with a voice that is loaded once."""

        prefetchable = True

        def __init__(self, voice: Any, settings: PiperSettings, work: WorkLog) -> None:
            self.native_rate = int(voice.config.sample_rate)
            self._work = work
            self._trim = settings.trim_leading_silence
            self._whole = settings.pieces and not getattr(voice, "speaks_in_pieces", False)
            # The parent's own initialiser would load the voice again.
            TTSService.__init__(
                self,
                push_start_frame=True,
                push_stop_frames=True,
                stop_frame_timeout_s=TTS_IDLE_S,
                sample_rate=self.native_rate,
                settings=PiperTTSService.Settings(model=None, voice=settings.voice, language=None),
            )
            self._voice = voice

        async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame, None]:
            start = now_ns()
            if self._whole:
                self._work.note("tts_whole_sentences", True)
            untouched, lead = self._trim, b""
            async for frame in super().run_tts(text, context_id):
                if untouched and isinstance(frame, TTSAudioRawFrame):
                    lead += frame.audio
                    audio = trimmed(lead, self.native_rate)
                    if audio is None:
                        continue
                    frame, untouched = self._sound(audio, context_id), False
                yield frame
            if untouched and lead:
                # Nothing sounded: it is given as it was made.
                yield self._sound(lead, context_id)
            self._work.add("tts_total", start)

        def _sound(self, audio: bytes, context_id: str) -> TTSAudioRawFrame:
            return TTSAudioRawFrame(audio, self.native_rate, 1, context_id=context_id)

    return SharedPiper


PLUGIN = Plugin(settings=PiperSettings, build=build, needs=needs, load=_shared_voice, title="Piper")
