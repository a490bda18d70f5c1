"""Made timelines of every kind: marks missing, out of order, ahead of the speech's end or after the sound."""

from __future__ import annotations

from hypothesis import strategies as st

from voicebench.turns.timeline import Mark, Timeline

INSTANTS = st.integers(-3_000_000_000, 3_000_000_000)

timelines = st.dictionaries(st.sampled_from(list(Mark)), INSTANTS).map(Timeline)
"""Any marks at any instants."""

sounding = st.dictionaries(st.sampled_from(list(Mark)), INSTANTS).flatmap(
    lambda marks: st.integers(0, 3_000_000_000).map(
        lambda total: Timeline(
            {**marks, Mark.SPEECH_END: 0, Mark.FIRST_AUDIBLE: total},
        )
    )
)
"""Any marks, with a first sound at or after the end of speech."""
