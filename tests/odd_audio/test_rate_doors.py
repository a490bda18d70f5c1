"""Audio at another rate than a stage works on is converted or refused, never heard or played too fast."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pipecat.frames.frames import InputAudioRawFrame, TTSAudioRawFrame, TTSStoppedFrame
from pipecat.processors.frame_processor import FrameDirection

from tests.audio.test_source_and_sink import running
from tests.pipeline.driven import Driver, scripted
from tests.stages.made_whisper import MadeWhisper, tokens_of
from voicebench.audio.decode import decode
from voicebench.audio.file_source import FileSource
from voicebench.audio.manifest import load_manifest
from voicebench.audio.pcm import mono, resample, to_pcm16
from voicebench.audio.play_sink import PlaySink
from voicebench.audio.rate_door import RateDoor
from voicebench.clock import NS_PER_MS, now_ns
from voicebench.errors import AudioProblem
from voicebench.pipeline.observer import Kind
from voicebench.pipeline.session import Session
from voicebench.plan.config import PluginSpec, Vad
from voicebench.stages import asr_whisper, tts_piper
from voicebench.stages import scripted as scripted_stages
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.turn import SmartTurnSettings, build_smart_turn
from voicebench.stages.vad import build_vad

SAMPLES = Path(__file__).parents[2] / "audio_samples"
HERTZ = 440.0


def tone(rate: int, seconds: float, channels: int = 1) -> bytes:
    """A tone of 440 Hz as 16-bit PCM, the same in all channels."""
    wave = 9_000 * np.sin(2 * np.pi * HERTZ * np.arange(round(seconds * rate)) / rate)
    return np.repeat(wave.astype(np.int16), channels).tobytes()


def hertz_of(samples: NDArray[np.int16], rate: int) -> float:
    """The strongest frequency."""
    size = 1 << 18
    spectrum = np.abs(np.fft.rfft(samples.astype(float) * np.hanning(samples.size), size))
    return float(np.argmax(spectrum)) * rate / size


def frames(audio: bytes, rate: int, channels: int = 1, ms: int = 20) -> list[Any]:
    """The audio in pieces as a transport gives them."""
    width = rate * ms // 1000 * 2 * channels
    return [
        InputAudioRawFrame(audio=audio[at : at + width], sample_rate=rate, num_channels=channels)
        for at in range(0, len(audio), width)
    ]


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 192_000])
def test_audio_passes_a_door_at_its_own_speed(rate: int, channels: int) -> None:
    """Pitch and length of a stream at any rate are kept; every frame that comes out states 16 kHz, mono."""
    door = RateDoor(16_000)
    given = frames(tone(rate, 1.0, channels), rate, channels)
    passed = [door.admit(frame) for frame in given]
    assert {(frame.sample_rate, frame.num_channels) for frame in passed} == {(16_000, 1)}
    assert all(frame.num_frames == len(frame.audio) // 2 for frame in passed)
    heard = np.frombuffer(b"".join(frame.audio for frame in passed), dtype=np.int16)
    assert heard.size / 16_000 == pytest.approx(1.0, abs=0.01)
    assert hertz_of(heard, 16_000) == pytest.approx(HERTZ, rel=0.01)
    assert {(frame.sample_rate, frame.num_channels) for frame in given} == {(rate, channels)}


def test_what_has_the_right_rate_passes_untouched() -> None:
    """A frame at the door's rate is handed on as it is, not copied."""
    [frame] = frames(tone(16_000, 0.02), 16_000)
    assert RateDoor(16_000).admit(frame) is frame


@pytest.mark.parametrize("rate", [0, 1, 3_999, 2_000_000_000])
def test_a_rate_that_no_sound_has_is_refused(rate: int) -> None:
    """A frame whose rate cannot be true is an error that names it."""
    frame = InputAudioRawFrame(audio=bytes(640), sample_rate=rate, num_channels=1)
    with pytest.raises(AudioProblem, match=f"{rate} Hz") as caught:
        RateDoor(16_000).admit(frame)
    assert caught.value.remedy


class OtherSource(FileSource):
    """A source that gives its clip at another rate, in several channels."""

    rate, channels = 8_000, 1

    async def _hand_on(self, audio: bytes) -> None:
        sound = np.frombuffer(audio, dtype=np.int16).astype(np.float32)
        places = np.arange(round(sound.size * self.rate / 16_000)) * 16_000 / self.rate
        other = np.interp(places, np.arange(sound.size), sound).astype(np.int16)
        await self.push_audio_frame(
            InputAudioRawFrame(np.repeat(other, self.channels).tobytes(), self.rate, self.channels)
        )


class MadeVoice:
    """A Piper voice of that rate that says everything as half a second of 440 Hz."""

    def __init__(self, rate: int) -> None:
        self.config = SimpleNamespace(sample_rate=rate)

    def synthesize(self, text: str) -> Any:
        """One piece."""
        yield SimpleNamespace(audio_int16_bytes=tone(self.config.sample_rate, 0.5))


@pytest.mark.parametrize(
    ("source_rate", "channels", "voice_rate", "sink_rate"),
    [(8_000, 1, 22_050, 16_000), (48_000, 2, 16_000, 44_100)],
)
async def test_a_turn_between_stages_of_other_rates_is_heard_and_played_at_its_speed(
    monkeypatch: pytest.MonkeyPatch, source_rate: int, channels: int, voice_rate: int, sink_rate: int
) -> None:
    """With a telephone's source, a voice and a sink each of another rate, Whisper and the detector hear the
    clip, and the sink plays the voice, at the right pitch, length and instant."""
    given: list[NDArray[np.float32]] = []

    class Recogniser(MadeWhisper):
        def transcribe(self, audio: Any, **options: Any) -> Any:
            given.append(audio)
            return super().transcribe(audio, **options)

    said = (tokens_of("what is the capital of france"), -0.2, 0.1)
    monkeypatch.setattr(asr_whisper, "load", lambda *_: Recogniser(lambda _: said))
    monkeypatch.setattr(tts_piper, "load", lambda *_: MadeVoice(voice_rate))
    config = scripted(llm={"text": "It is Paris."}, hear="reply", turn_timeout_s=6).model_copy(
        update={"asr": PluginSpec(kind="whisper"), "tts": PluginSpec(kind="piper")}
    )
    driver = Driver(config)
    source = OtherSource()
    source.rate, source.channels = source_rate, channels
    session = Session(
        driver.mode, driver.specs, config, driver.shared, lambda _: (source, PlaySink(sink_rate))
    )
    await session.open()
    try:
        speech = np.frombuffer(tone(16_000, 0.6), dtype=np.int16)
        heard = await session.turn(np.append(speech, np.zeros(1_600, dtype=np.int16)), 0.6, True)
    finally:
        await session.close()
        driver.shared.close()
    assert heard.ending == "answered"
    [stop] = [event.at_ns for event in heard.events if event.kind is Kind.VAD_STOP]
    assert heard.speech_end_ns is not None
    assert (stop - heard.speech_end_ns) / NS_PER_MS == pytest.approx(config.vad.stop_secs * 1_000, abs=120)
    [segment] = given
    sounding = np.flatnonzero(np.abs(segment) > 0.1)
    assert (sounding[-1] - sounding[0]) / 16_000 == pytest.approx(0.6, rel=0.01)
    assert hertz_of((segment[sounding[0] : sounding[-1]] * 32767).astype(np.int16), 16_000) == pytest.approx(
        HERTZ, rel=0.01
    )
    pieces = [np.concatenate(run.pieces) for run in heard.played.runs]
    assert {run.sample_rate for run in heard.played.runs} == {sink_rate}
    sound = np.concatenate(pieces)
    places = np.flatnonzero(np.abs(sound) > 1_000)
    assert (places[-1] - places[0]) / sink_rate == pytest.approx(0.5, abs=0.02)
    assert hertz_of(sound[places[0] : places[-1]], sink_rate) == pytest.approx(HERTZ, rel=0.01)


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (44_100, 2)])
async def test_whisper_hears_telephone_speech_at_its_speed(rate: int, channels: int) -> None:
    """Whisper's service converts what comes to it, whoever sends it, and keeps its own rate for silence."""
    model = MadeWhisper(lambda _: (tokens_of("yes"), -0.2, 0.1))
    service = asr_whisper._service_class()(model, WhisperSettings(), WorkLog())
    service._user_speaking = True
    given = frames(tone(rate, 1.0, channels), rate, channels)
    for frame in given:
        await service.process_audio_frame(frame, FrameDirection.DOWNSTREAM)
    heard = np.frombuffer(bytes(service._audio_buffer), dtype=np.int16)
    assert heard.size / 16_000 == pytest.approx(1.0, abs=0.01)
    assert hertz_of(heard, 16_000) == pytest.approx(HERTZ, rel=0.01)
    assert given[0].sample_rate == rate, "others get the frame as it was"


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (22_050, 2), (24_000, 3), (48_000, 1)])
async def test_the_sink_plays_any_voice_at_its_speed(rate: int, channels: int) -> None:
    """Audio of another rate or of several channels than the sink's keeps pitch and length."""
    async with running(24_000) as bench:
        await bench.worker.queue_frame(TTSAudioRawFrame(tone(rate, 0.3, channels), rate, channels))
        await bench.worker.queue_frame(TTSStoppedFrame())
        await bench.until_written(round(0.27 * 24_000))
        await bench.until(lambda played: played.cursor_ns < now_ns())
        sound = np.concatenate([piece for run in bench.sink.played.runs for piece in run.pieces])
    places = np.flatnonzero(np.abs(sound) > 1_000)
    assert (places[-1] - places[0]) / 24_000 == pytest.approx(0.3, abs=0.02)
    assert hertz_of(sound[places[0] : places[-1]], 24_000) == pytest.approx(HERTZ, rel=0.01)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 48_000])
async def test_the_tone_and_its_frame_state_one_rate(rate: int) -> None:
    """The scripted voice's frames are as long as their stated rate says."""
    service = scripted_stages.build_tts(
        scripted_stages.ToneScript(
            sample_rate=rate, first_byte_ms=0, leading_silence_ms=0, seconds_per_word=0.5
        ),
        Shared(),
        WorkLog(),
    )
    [frame] = [frame async for frame in service.run_tts("one", "context")]
    assert frame.sample_rate == rate == service.native_rate
    assert frame.num_frames / rate == pytest.approx(0.5, rel=0.01)
    assert hertz_of(np.frombuffer(frame.audio, dtype=np.int16), rate) == pytest.approx(HERTZ, rel=0.01)


def speech(rate: int) -> bytes:
    """A recorded question at that rate."""
    sample = next(one for one in load_manifest(SAMPLES) if one.id == "capital-of-france")
    clip = decode(sample.path)
    return to_pcm16(resample(mono(clip), clip.sample_rate, rate))


async def spoken_from(rate: int) -> tuple[float, float]:
    """When Silero hears the question begin and end at that rate, in seconds."""
    vad = build_vad(Vad(kind="silero"))
    vad.set_sample_rate(rate)
    states = []
    audio = np.frombuffer(speech(rate), dtype=np.int16)
    audio = np.append(audio, np.zeros(rate, dtype=np.int16))
    for at in range(0, audio.size, rate // 50):
        states.append((await vad.analyze_audio(audio[at : at + rate // 50].tobytes())).name == "SPEAKING")
    await vad.cleanup()
    voiced = np.flatnonzero(states)
    return voiced[0] / 50, voiced[-1] / 50


async def test_silero_works_at_its_two_rates_and_refuses_others() -> None:
    """At 8 and 16 kHz speech begins and ends at the same instants; any other rate is an error."""
    narrow, wide = await spoken_from(8_000), await spoken_from(16_000)
    assert narrow == pytest.approx(wide, abs=0.15)
    vad = build_vad(Vad(kind="silero"))
    for rate in (11_025, 22_050, 24_000, 44_100, 48_000):
        with pytest.raises(ValueError, match=f"{rate}"):
            vad.set_sample_rate(rate)
    await vad.cleanup()


async def test_the_energy_detector_measures_time_at_any_rate() -> None:
    """Its window is 10 ms at whatever rate it is told."""
    for rate in (8_000, 16_000, 48_000):
        vad = build_vad(Vad(kind="energy"))
        vad.set_sample_rate(rate)
        assert vad.num_frames_required() == rate // 100
        await vad.cleanup()


async def test_smart_turn_hears_the_same_at_every_rate() -> None:
    """A finished question is judged alike at 8, 16, 24 and 48 kHz: its audio comes at the model's rate."""
    found = {}
    for rate in (8_000, 16_000, 24_000, 48_000):
        strategies = build_smart_turn(SmartTurnSettings(), Vad(), WorkLog())
        analyzer = strategies.stop[0]._turn_analyzer
        analyzer.set_sample_rate(rate)
        given: list[int] = []
        resampled = analyzer._resample_to_model_rate

        def counted(audio: Any, resampled: Any = resampled, given: list[int] = given) -> Any:
            made = resampled(audio)
            given.append(len(made))
            return made

        analyzer._resample_to_model_rate = counted
        for frame in frames(speech(rate), rate):
            analyzer.append_audio(frame.audio, is_speech=True)
        state, _ = await analyzer.analyze_end_of_turn()
        found[rate] = (state.name, given[0] / 16_000)
        await analyzer.cleanup()
    assert {state for state, _ in found.values()} == {"COMPLETE"}
    assert all(seconds == pytest.approx(found[16_000][1], rel=0.01) for _, seconds in found.values())
