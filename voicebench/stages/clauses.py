"""When is a piece of the reply ready to be spoken? The rule by which text goes to speech synthesis.

pipecat waits for a whole sentence and the first character of the next one, so a reply of one sentence waits
for its end. `natural` lets the first piece go at the first natural break; `words` goes on to cut it after so
many words where no break comes. A cut without a break leaves a seam in the prosody: hence a choice.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from voicebench.plan.config import Clause
from voicebench.stages.quiet import hush_pipecat

_ABBREVIATION = re.compile(r"(?:^|\s)(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|No|approx)\.$")
_PHRASE_BEGINS = frozenset(
    {
        "about",
        "after",
        "and",
        "as",
        "at",
        "because",
        "before",
        "but",
        "by",
        "for",
        "from",
        "if",
        "in",
        "into",
        "like",
        "of",
        "on",
        "or",
        "so",
        "than",
        "that",
        "to",
        "which",
        "when",
        "where",
        "while",
        "who",
        "with",
        "without",
    }
)
"""English words that begin a phrase: a pause before one of them sounds least like a stumble."""
_BREAK = re.compile(r"[,;:.!?…—][\"'”’)\]]*(?=\s|$)")


def ready(text: str, settings: Clause) -> int | None:
    """How many characters of the reply's beginning can go to synthesis now; None: wait.

    A break counts as soon as it is there, except where more text could change its meaning: a full stop or
    a comma after a digit, and a full stop after an abbreviation, wait for the next character.
    """
    if settings.rule == "sentence":
        return None
    for found in _BREAK.finditer(text):
        piece = text[: found.end()]
        open_end = found.end() == len(text)
        if len(piece.split()) >= settings.least_words and not _goes_on(piece, open_end):
            return len(piece)
    words = text.split()
    if settings.rule == "words" and len(words) > settings.most_words:
        return len(_first_words(text, settings.most_words))
    return None


def _goes_on(piece: str, open_end: bool) -> bool:
    """Is the mark at the end of `piece` no break: part of an abbreviation, or perhaps of a number?

    `open_end`: nothing has come after it yet.
    """
    if _ABBREVIATION.search(piece) is not None:
        return True
    return open_end and piece[-1] in ",.:" and len(piece) > 1 and piece[-2].isdigit()


def _first_words(text: str, most: int) -> str:
    """At most so many words, up to the last word that begins a phrase where one is in their second half."""
    words = re.findall(r"\s*\S+", text)
    inner = range(most, most // 2, -1)
    count = next((place for place in inner if words[place].strip().lower() in _PHRASE_BEGINS), most)
    return "".join(words[:count])


def aggregator(settings: Clause) -> Any:
    """pipecat's text aggregator with this rule for the first piece of each reply; None for its own rule."""
    if settings.rule == "sentence":
        return None
    hush_pipecat()
    from pipecat.utils.text.base_text_aggregator import Aggregation, TextType
    from pipecat.utils.text.simple_text_aggregator import SimpleTextAggregator

    class FirstClause(SimpleTextAggregator):
        """Lets the first piece of a reply go early, the rest as pipecat does."""

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]  # pipecat leaves it so
            self._first = ""
            self._gone = False

        async def aggregate(self, text: str) -> AsyncIterator[Aggregation]:
            if not self._gone:
                self._first += text
                count = ready(self._first, settings)
                if count is None:
                    return
                piece, rest = self._first[:count], self._first[count:]
                self._first, self._gone = "", True
                yield Aggregation(text=piece.strip(), type=TextType.SENTENCE)
                text = rest
            async for piece_of_rest in super().aggregate(text):
                yield piece_of_rest

        async def flush(self) -> Aggregation | None:
            held, self._first = self._first.strip(), ""
            self._gone = False
            if held:
                return Aggregation(text=held, type=TextType.SENTENCE)
            return await super().flush()

        async def handle_interruption(self) -> None:
            self._first, self._gone = "", False
            await super().handle_interruption()  # type: ignore[no-untyped-call]

        async def reset(self) -> None:
            self._first, self._gone = "", False
            await super().reset()  # type: ignore[no-untyped-call]

    return FirstClause()
