"""What a person sees while a slot run goes on: a line for each request, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voicebench.cli.screen import Screen

if TYPE_CHECKING:
    from voicebench.turns.records import TurnRecord

NAME_WIDTH = 30


class SlotScreen(Screen):
    """A `voicebench.slot_run.SlotReporter` on the terminal; `slot_ms` is the slot that each line tells of."""

    def __init__(self, *, quiet: bool, budget_ms: float, slot_ms: float) -> None:
        super().__init__(quiet=quiet, verbose=False, budget_ms=budget_ms)
        self._slot_ms = slot_ms
        self.wrong = 0
        """Requests that went wrong so far."""

    def begin(self, turns: int) -> None:
        """Begin to count requests."""
        self._bar.update(self._task, description="Requests", total=turns, completed=0)

    def turn(self, record: TurnRecord) -> None:
        """One line for the request."""
        from voicebench.turns.records import Outcome

        fine = (Outcome.COMPLETED, Outcome.EMPTY, Outcome.TOOL_CALL)
        self.records.append(record)
        self.wrong += record.outcome not in fine
        self._bar.update(self._task, advance=1)
        self._say(request_line(record, self._slot_ms))

    def cold(self, record: TurnRecord) -> None:
        """One line for a request on a new connection, marked as such."""
        self._say(f"{request_line(record, self._slot_ms)}, cold")


def request_line(record: TurnRecord, slot_ms: float) -> str:
    """A request in a line: mode, prompt, first text, pace, and what had come by the slot's end."""
    from voicebench.clock import NS_PER_MS
    from voicebench.export.texts import one_line, shortened
    from voicebench.turns.records import Outcome
    from voicebench.turns.slot import decode_rate_tok_s, delivered

    begin = f"{one_line(record.mode):<{NAME_WIDTH}} {one_line(record.sample):<11}"
    if record.outcome is not Outcome.COMPLETED:
        return f"{begin} {record.outcome.value}: {shortened(record.reason or '', 200)}"
    request, first = record.marks_ns["llm_request"], record.marks_ns["llm_first_text"]
    rate = decode_rate_tok_s(record)
    there = delivered(record, round(slot_ms * NS_PER_MS))
    told = [f"first text {(first - request) / NS_PER_MS:6.1f} ms"]
    told.append("" if rate is None else f"{rate:7.1f} tok/s")
    told.append("" if there is None else f"{there.tokens:5.0f} tokens in {slot_ms:g} ms")
    flags = ", ".join(flag.value for flag in record.flags if flag.value != "length")
    return f"{begin} {', '.join(part for part in told if part)}{f'  [{flags}]' if flags else ''}"
