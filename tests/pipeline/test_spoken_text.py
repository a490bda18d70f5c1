"""What was spoken stands beside what was written, and what the first clause waited for is in the record."""

from __future__ import annotations

import pytest

from tests.pipeline.driven import SPEECH_S, clip, driving
from tests.pipeline.made_turns import facts, heard_person, spoken, stream, turn
from voicebench.pipeline.record import record
from voicebench.turns.markup import holds_markup
from voicebench.turns.records import Outcome

LONG = "**Paris** 🙂 is the `capital` of the whole of France and has been that for a very long time indeed."
REST = "[See](https://example.org) for yourself."
PER_WORD_MS = 25.0


async def test_the_spoken_text_stands_beside_the_raw_one_with_what_the_first_clause_waited_for() -> None:
    """Markdown, emoji and code are in the reply as they were written and in what was sent to the voice, none
    eaten and told as a caveat; a long first sentence is the first clause, and its wait is the stage."""
    written = f"{LONG} {REST}"
    said = {"text": written, "per_word_ms": PER_WORD_MS, "first_text_ms": 20}
    async with driving(hear="reply", turn_timeout_s=8, llm=said, tts={"seconds_per_word": 0.02}) as driver:
        made = await driver.record(clip(SPEECH_S))
    assert made.outcome is Outcome.COMPLETED, made.reason
    assert made.reply == written
    assert made.spoken is not None
    assert "".join(made.spoken.split()) == "".join(written.split())
    assert "markup_spoken" in made.caveats
    assert made.first_clause == LONG
    words = len(LONG.split())
    assert made.stages_ms is not None
    waited = made.stages_ms["clause"]
    assert waited is not None
    assert waited >= (words - 1) * PER_WORD_MS - 5
    assert made.clause_ready_ns is not None
    assert made.clause_ready_ns == made.marks_ns["tts_request"] - made.marks_ns["llm_request"]


@pytest.mark.parametrize(
    "text",
    [
        "**Paris**",
        "# Paris",
        "- one\n## two",
        "`print`",
        "yes 🙂",
        "☀ today",
        "[a](b)",
        "~~no~~",
        "https://x",
    ],
)
def test_signs_for_eyes_are_found(text: str) -> None:
    """Marks of Markdown and code, addresses and emoji are found wherever they stand."""
    assert holds_markup(text)
    made = record(facts(), turn(heard_person() + spoken(text=text), [stream(texts=(text,))]))
    assert "markup_spoken" in made.caveats
    assert made.reply == made.spoken == text


@pytest.mark.parametrize(
    "text",
    [
        "It is Paris.",
        "About 20 °C, 3-4 km.",
        "Room #12 is “blue”!",
        "Ça va? Größe, 東京, مرحبا",
        "a_b - c: d",
    ],
)
def test_plain_text_of_any_script_holds_none(text: str) -> None:
    """Punctuation, numbers, units and letters of any script are no markup."""
    assert not holds_markup(text)
    made = record(facts(), turn(heard_person() + spoken(text=text), [stream(texts=(text,))]))
    assert "markup_spoken" not in made.caveats
