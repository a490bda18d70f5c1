"""The caveats and where they stand: each once, beside the figures that it touches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voicebench.analysis.report import Report
from voicebench.export.html.markup import Safe, join, tag, user_text
from voicebench.export.tables import several_anchors

_COUNT = re.compile(r"\d[\d.]*")
MODES, STAGES, SLOT, SPREAD, TURNS, MACHINE = "modes", "stages", "slot", "spread", "turns", "machine"

SECTION_OF = {
    "missing_marks": STAGES,
    "waveform_disagrees": STAGES,
    "transcript_after_turn_end": STAGES,
    "asr_fallback": STAGES,
    "asr_out_of_time": STAGES,
    "tts_whole_sentences": STAGES,
    "speech_end_uncertain": STAGES,
    "several_tokens_a_delta": SLOT,
    "speech_assumed": SLOT,
    "count_estimated": SLOT,
    "assumed_speed": SLOT,
    "length": SLOT,
    "outliers": SPREAD,
    "cold_first_turn": SPREAD,
    "slow_first_turn": SPREAD,
    "no_warm_up": SPREAD,
    "cold_pipeline": SPREAD,
    "cutoff": SPREAD,
    "client_limited": SPREAD,
    "late_chunk": SPREAD,
    "wav_length": TURNS,
    "trailing_bytes": TURNS,
    "cut_short": TURNS,
    "clipped": TURNS,
    "answered_silence": TURNS,
    "text_then_tool_call": TURNS,
    "markup_spoken": TURNS,
    "no_noise_floor": MACHINE,
    "synthetic_samples": MACHINE,
    "torn_journal": MACHINE,
    "unreadable_lines": MACHINE,
    "newer_fields": MACHINE,
    "repeated_records": MACHINE,
    "unfinished_run": MACHINE,
}
"""Code to section. Any other code stands under the table of modes."""


def caveats_of(report: Report, section: str, present: Sequence[str]) -> tuple[Safe, ...]:
    """The caveats that stand in a section, each code once: where counts differ, each with its modes.

    A caveat whose own section is not among `present` stands under the table of modes.
    """
    anchors = several_anchors(report)
    by_code: dict[str, dict[str, list[str]]] = {}
    for caveat in report.caveats:
        place = SECTION_OF.get(caveat.code, MODES)
        if (place if place in present else MODES) != section:
            continue
        name = caveat.mode or ""
        if caveat.mode and caveat.anchor and anchors:
            name = f"{caveat.mode}, {caveat.anchor}"
        by_code.setdefault(caveat.code, {}).setdefault(caveat.text, []).append(name)
    return tuple(_caveat(code, texts, len(report.modes)) for code, texts in by_code.items())


def _caveat(code: str, texts: dict[str, list[str]], every: int) -> Safe:
    name = code.replace("_", " ").capitalize()
    said = next(iter(texts)).lower().startswith(name.lower())
    head = None if said else tag("b", f"{name}. ")
    ahead, behind = common_ends(list(texts))
    if not all(_COUNT.fullmatch(words[len(ahead) : len(words) - len(behind)]) for words in texts):
        ahead = behind = ""
    parts: list[Safe] = []
    for words, modes in texts.items():
        own = words[len(ahead) : len(words) - len(behind)]
        parts.append(join(", " if parts else None, user_text(own), _who(modes, every)))
    return tag("p", head, ahead, *parts, behind, class_="caveat", data_caveat=code)


def _who(modes: Sequence[str], every: int) -> Safe | None:
    named = [mode for mode in dict.fromkeys(modes) if mode]
    if not named:
        return None
    if len(named) == every > 1:
        return tag("span", " (every mode)", class_="mute")
    return tag("span", " (", user_text("; ".join(named), 400), ")", class_="mute")


def common_ends(texts: Sequence[str]) -> tuple[str, str]:
    """What all texts begin with, and what they end with, in whole words; the two never overlap."""
    if len(texts) < 2:
        return "", ""
    words = [re.findall(r"\d+|\s+|[^\d\s]+", text) for text in texts]
    least = min(map(len, words))
    ahead = 0
    while ahead < least and len({line[ahead] for line in words}) == 1:
        ahead += 1
    behind = 0
    while behind < least - ahead and len({line[-1 - behind] for line in words}) == 1:
        behind += 1
    first = words[0]
    return "".join(first[:ahead]), "".join(first[len(first) - behind :])


def note(head: str, words: str) -> Safe:
    """A note beside a figure: how it is to be read."""
    return tag("p", tag("b", head, "."), " ", words)


def beside(*notes: Safe | None) -> Safe:
    """The margin of a section."""
    return tag("aside", join(*notes), class_="notes")
