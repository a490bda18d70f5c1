"""What becomes of a spoken turn with each fault of the emulator, over each protocol."""

from __future__ import annotations

from voicebench.turns.records import Outcome

OUTCOMES = {
    "429": Outcome.RATE_LIMITED,
    "429-once": Outcome.RATE_LIMITED,
    "503": Outcome.OVERLOADED,
    "529": Outcome.OVERLOADED,
    "overloaded-in-stream": Outcome.OVERLOADED,
    "empty": Outcome.EMPTY,
    "blank-only": Outcome.EMPTY,
    "tool-call": Outcome.TOOL_CALL,
    "no-terminal": Outcome.TRUNCATED,
    "drop": Outcome.TRUNCATED,
    "reset": Outcome.TRUNCATED,
    "half-event": Outcome.TRUNCATED,
    "hang-headers": Outcome.TIMED_OUT,
    "hang-first-text": Outcome.TIMED_OUT,
    "hang-mid": Outcome.TIMED_OUT,
    **dict.fromkeys(("401", "403", "404", "408", "500", "redirect"), Outcome.FAILED),
    **dict.fromkeys(("error-in-stream", "failed-in-stream"), Outcome.FAILED),
    **dict.fromkeys(
        (
            *("asked-not-served", "blank-then-text", "text-then-tool-call", "filtered-in-stream"),
            *("done-without-finish", "finish-without-done", "drip", "utf8-split", "crlf", "comments", "bom"),
        ),
        Outcome.COMPLETED,
    ),
}
"""What becomes of a turn with each fault, over every protocol but for those in `UNLIKE`."""
UNLIKE = {
    # The Responses API knows no [DONE]: without its terminal event the stream is cut short.
    ("done-without-finish", "openai-responses"): Outcome.TRUNCATED,
    ("done-without-finish", "openai-responses-ws"): Outcome.TRUNCATED,
    # A socket is open before the request names a model.
    ("redirect", "openai-responses-ws"): Outcome.COMPLETED,
}


def outcome_of(fault: str, api: str) -> Outcome:
    """What becomes of a turn with this fault over this protocol."""
    return UNLIKE.get((fault, api), OUTCOMES[fault])
