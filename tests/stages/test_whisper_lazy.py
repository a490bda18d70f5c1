"""faster-whisper decodes while its result is read, not when it is called: the time of that is recognition."""

from __future__ import annotations

import numpy as np
import pytest

from tests.stages.made_whisper import MadeWhisper, tokens_of
from voicebench.clock import NS_PER_MS
from voicebench.stages import asr_whisper, shared
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.shared import WorkLog

SECOND = np.zeros(16_000, dtype=np.int16)
DECODING_MS = 500


async def test_recognition_lasts_until_the_result_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a decoding that takes 500 ms the call itself takes none; the ASR's work is 500 ms, and the
    transcript comes after it."""
    now = 1_000 * NS_PER_MS
    monkeypatch.setattr(asr_whisper, "now_ns", lambda: now)
    monkeypatch.setattr(shared, "now_ns", lambda: now)

    def decoding() -> None:
        nonlocal now
        now += DECODING_MS * NS_PER_MS

    model = MadeWhisper(lambda temperature: (tokens_of("what is the capital of france"), -0.2, 0.1))
    model.network.on_attempt = decoding
    pieces, _ = model.transcribe(SECOND.astype(np.float32), language="en", beam_size=5)
    assert now == 1_000 * NS_PER_MS, "the library has become eager: this test holds nothing any more"
    assert list(pieces)
    begun = now = 2_000 * NS_PER_MS

    work = WorkLog()
    service = asr_whisper._service_class()(model, WhisperSettings(), work)
    at = [now async for _ in service.run_stt(SECOND.tobytes())]
    assert at == [begun + DECODING_MS * NS_PER_MS]
    [(name, lasted)] = [(one.name, one.end_ns - one.start_ns) for one in work.take()[0]]
    assert (name, lasted) == ("asr", DECODING_MS * NS_PER_MS)
