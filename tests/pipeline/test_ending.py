"""When is a turn over, and how did it end? Judged from what is known at an instant."""

from __future__ import annotations

import pytest

from tests.pipeline.made_turns import at, event, heard_person, played, spoken, stream, turn
from voicebench.pipeline.asr_watch import AsrWatch
from voicebench.pipeline.ending import judge
from voicebench.pipeline.observer import Event, Kind
from voicebench.pipeline.session import Heard

NOTHING = played()
LATER = 60_000.0


def ends(heard: Heard, ms: float = LATER, hear: str = "onset") -> str | None:
    """How the turn ended by that instant."""
    return judge(heard, at(ms), hear)  # type: ignore[arg-type]


def test_nothing_is_over_while_anything_moves() -> None:
    """An open stream, a person who speaks and a recogniser at work each keep the turn open for ever."""
    assert ends(turn(heard_person(), [stream(status="running")], NOTHING)) is None
    assert ends(turn([event(Kind.TURN_START, -100), event(Kind.VAD_START, -100)], [], NOTHING)) is None
    assert ends(turn(heard_person()[:5], [], NOTHING)) is None
    asr = AsrWatch()
    asr._at_work = 1
    assert ends(turn(heard_person()[:4], [], NOTHING, asr=asr)) is None


def test_an_answer_waits_for_a_transcript_that_is_being_made() -> None:
    """A reply that came before the last transcript is over when it is known what that would have said."""
    heard = turn()
    heard.asr._at_work = 1
    assert ends(heard, 700) is None
    heard.asr._at_work = 0
    assert ends(heard, 700) == "answered"


def test_a_clause_that_is_still_being_made_keeps_the_turn_open() -> None:
    """A voice that has a clause and gives nothing yet is slow; where it broke, nothing is owed."""
    waiting = [*heard_person(), event(Kind.TTS_REQUEST, 530, "It is Paris.")]
    assert ends(turn(waiting, [stream()], NOTHING)) is None
    assert ends(turn([*waiting, event(Kind.ERROR, 700, "no")], [stream()], NOTHING)) == "error"


def test_an_onset_is_enough_where_only_the_onset_is_asked_for() -> None:
    """The turn is over when the first 5 ms of sound have been played: cut there, the sound stays a sound."""
    heard = turn()
    assert ends(heard, 639) is None
    assert ends(heard, 644.9) is None
    assert ends(heard, 645) == "answered"
    heard.played.flush(at(645))
    assert heard.attempts()[0].first_audible_ns == at(640)


def test_a_clause_must_have_sounded() -> None:
    """With `clause` the turn is over when the first clause's own seconds have sounded."""
    more = [event(Kind.TTS_REQUEST, 605, "More."), event(Kind.TTS_AUDIO, 700, seconds=2.0)]
    events = [*heard_person(), *spoken()[:3], *more]
    heard = turn(events, sounds=played((640, 3140)))
    assert ends(heard, 1100, "clause") is None
    assert ends(heard, 1141, "clause") == "answered"


def test_a_reply_must_have_sounded_whole() -> None:
    """With `reply` the turn is over when all its speech has been made and has sounded, gaps and all."""
    first = [*heard_person(), *spoken()[:3]]
    second = [
        event(Kind.TTS_REQUEST, 605, "More."),
        event(Kind.TTS_AUDIO, 3000, seconds=0.5),
        event(Kind.TTS_SPOKEN, 3001, "More."),
        event(Kind.TTS_STOPPED, 3002),
    ]
    assert ends(turn([*first, second[0]]), 2900, "reply") is None
    heard = turn([*first, *second], sounds=played((640, 1140), (3010, 3510)))
    assert ends(heard, 3100, "reply") is None
    assert ends(heard, 3511, "reply") == "answered"


def test_a_reply_that_is_not_heard_to_its_end_is_over_when_nothing_more_comes() -> None:
    """Where the sink got less than synthesis made, the turn ends all the same."""
    heard = turn(sounds=played((640, 700)))
    assert ends(heard, 1500, "reply") is None
    assert ends(heard, LATER, "reply") == "answered"


@pytest.mark.parametrize("status", ["failed", "rate_limited", "overloaded", "timed_out"])
def test_a_stream_that_failed_ends_the_turn_at_once(status: str) -> None:
    """A refused request is not waited for; one whose beginning is being spoken is, until it sounds."""
    broken = stream(first=None, status=status)  # type: ignore[arg-type]
    assert ends(turn(heard_person(), [broken], NOTHING), 400) == "error"
    partial = stream(status=status)  # type: ignore[arg-type]
    assert ends(turn(streams=[partial]), 644) is None
    assert ends(turn(streams=[partial]), 645) == "error"


@pytest.mark.parametrize("log", [stream(first=None), stream(texts=(" ",)), stream(first=None, tool_calls=1)])
def test_a_reply_without_text_is_not_waited_for(log: object) -> None:
    """An empty, a blank and a tool-call-only reply end the turn when their stream ends."""
    assert ends(turn(heard_person(), [log], NOTHING), 600) == "no_reply"  # type: ignore[list-item]


def test_silence_after_everything_says_how_it_ended() -> None:
    """When nothing has moved for a while: nobody spoke, a stale reply, a silent one or an error."""
    cases: list[tuple[str, Heard]] = [
        ("nobody_spoke", turn([], [], NOTHING, speech=False)),
        ("nobody_spoke", turn([], [], NOTHING)),
        ("nobody_spoke", turn(heard_person()[:4], [], NOTHING)),
        ("silent_reply", turn(heard_person() + spoken(seconds=0.0), sounds=NOTHING)),
        ("error", turn([*heard_person(), event(Kind.ERROR, 500, "no")], [], NOTHING)),
        (
            "stale",
            turn([event(Kind.TURN_START, -900), event(Kind.TURN_END, -700)], [stream(-690, -500)], NOTHING),
        ),
    ]
    for ending, heard in cases:
        assert ends(heard) == ending
        assert ends(heard, 20) is None


def test_a_transcript_that_never_comes_is_waited_for_longer() -> None:
    """A person who was heard and not understood gets five seconds of patience, then it was nobody."""
    heard = turn(heard_person()[:4], [], NOTHING)
    assert ends(heard, 200 + 4900) is None
    assert ends(heard, 200 + 5100) == "nobody_spoke"


def noise(*after: Event) -> list[Event]:
    """A reply that a noise interrupts before it sounds."""
    start = [event(Kind.VAD_START, 449), event(Kind.TURN_START, 450), event(Kind.INTERRUPTION, 451)]
    return [*heard_person(), *start, event(Kind.VAD_STOP, 700), *after]


@pytest.mark.parametrize(
    "log",
    [
        stream(first=None, status="cancelled", end=452),
        stream(first=400, status="cancelled", end=452),
        stream(first=350, texts=("Yes.",)),
    ],
    ids=["before its text", "in its text", "after its text"],
)
def test_a_reply_that_a_noise_cancelled_is_cancelled(log: object) -> None:
    """Whenever the interruption came before the sound, the reply was cancelled and not silent."""
    assert ends(turn(noise(), [log], NOTHING)) == "cancelled"  # type: ignore[list-item]
    ended = noise(event(Kind.TURN_END, 5700))
    assert ends(turn(ended, [log], NOTHING)) == "cancelled"  # type: ignore[list-item]


def test_an_interruption_at_the_turns_beginning_cancels_nothing() -> None:
    """Each turn begins with an interruption: it is none of its own reply."""
    assert ends(turn(heard_person() + spoken(seconds=0.0), sounds=NOTHING)) == "silent_reply"


def test_a_reply_that_was_cut_off_while_it_sounded_was_heard() -> None:
    """A noise that stops a reply in the middle leaves an answered turn, whose latency is known."""
    events = [*heard_person(), *spoken()[:3], event(Kind.TURN_START, 800), event(Kind.INTERRUPTION, 801)]
    events.append(event(Kind.VAD_STOP, 1000))
    heard = turn(events, sounds=played((640, 801)))
    assert ends(heard, LATER, "reply") == "answered"


async def test_a_recogniser_of_segments_is_known_to_be_at_work() -> None:
    """While a segment is transcribed the watch says so, and not before, after or when it broke."""
    from pipecat.services.settings import STTSettings
    from pipecat.services.stt_service import SegmentedSTTService

    watch = AsrWatch()
    seen: list[bool] = []

    class Segments(SegmentedSTTService):
        async def run_stt(self, audio: bytes):  # type: ignore[no-untyped-def]
            seen.append(watch.running)
            if not audio:
                raise RuntimeError("no audio")
            yield None

    service = Segments(settings=STTSettings(model="x", language=None), ttfs_p99_latency=1.0)
    watch.watch(service)
    assert not watch.running
    assert [frame async for frame in service.run_stt(b"abc")] == [None]
    with pytest.raises(RuntimeError, match="no audio"):
        [frame async for frame in service.run_stt(b"")]
    assert seen == [True, True]
    assert not watch.running
    assert not watch.may_speak(heard_person()[:4])


def test_a_recogniser_that_streams_may_always_speak() -> None:
    """Of a streaming service that was silent nobody knows whether it is done; once it spoke, it is."""
    watch = AsrWatch()
    watch.by_segment = False
    assert watch.may_speak(heard_person()[:4])
    assert not watch.may_speak(heard_person())
    assert not watch.may_speak([])
    watch._at_work = 1
    assert not watch.running
