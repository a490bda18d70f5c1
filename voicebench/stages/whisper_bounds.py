"""How much work Whisper may put into one segment: tokens an attempt, attempts a window, and time in all.

Whisper decodes a window of 30 s again at the next temperature where a result looks wrong, and goes on with a
further window wherever its own time stamps end: noise can keep it busy for many times the audio's length.
"""

from __future__ import annotations

from collections.abc import Iterator

from voicebench.clock import NS_PER_S, now_ns

TOKENS_A_SECOND = 10
"""English has 6 in fast speech."""
TOKENS_A_SECOND_MULTILINGUAL = 25
"""Scripts without words of their own in the vocabulary take several tokens a character."""
SPARE_TOKENS = 16
_PROMPT_TOKENS = 8
"""More than the longest prompt without earlier text."""
WINDOW_S = 30.0


def most_tokens(seconds: float, *, multilingual: bool, longest: int) -> int:
    """The most tokens that one attempt at `seconds` of audio may give, in a sequence of `longest` at most."""
    rate = TOKENS_A_SECOND_MULTILINGUAL if multilingual else TOKENS_A_SECOND
    return min(longest - _PROMPT_TOKENS, SPARE_TOKENS + round(min(seconds, WINDOW_S) * rate))


class OutOfTime(Exception):
    """A further window would begin after the last instant at which one may."""


class Attempts(tuple[float, ...]):
    """The temperatures at which a segment is tried, for `WhisperModel.transcribe`, which takes them one after
    the other anew for each window. They count the attempts, and end them `within_s` seconds after the first.

    One attempt is never broken off, and the first is always made. Each thread needs its own.
    """

    made: int
    """Attempts in all windows."""
    hottest: float
    """The highest temperature that was tried, the first one where there was no attempt."""
    cut: bool
    """Was an attempt or a window left out for want of time?"""

    def __new__(cls, temperatures: tuple[float, ...], within_s: float) -> Attempts:
        """Temperatures in the order in which they are tried. Raises ValueError where there are none."""
        if not temperatures:
            raise ValueError("decoding needs a temperature")
        made = super().__new__(cls, temperatures)
        made.made, made.cut, made.hottest = 0, False, temperatures[0]
        made._last_ns = 0
        made._within_ns = round(within_s * NS_PER_S)
        return made

    _last_ns: int
    _within_ns: int

    def __iter__(self) -> Iterator[float]:
        """The temperatures of one window. Raises OutOfTime where it would begin too late."""
        if not self.made:
            self._last_ns = now_ns() + self._within_ns
        for place, temperature in enumerate(super().__iter__()):
            if self.made and now_ns() > self._last_ns:
                self.cut = True
                if place:
                    return
                raise OutOfTime
            self.made += 1
            self.hottest = max(self.hottest, temperature)
            yield temperature

    @property
    def tried_again(self) -> bool:
        """Was any window decoded at another temperature than the first?"""
        return self.hottest > self[0]
