"""The report as plain values: exactly what `report.json` holds. Fields are added freely and never renamed."""

from __future__ import annotations

from typing import Any

from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.statistics import StageMeans, Summary


def plain_mode(entry: ModeReport) -> dict[str, Any]:
    """One of `modes` in `report.json`."""
    return {
        "mode": entry.mode,
        "kind": entry.kind,
        "model": entry.model,
        "anchor": None if entry.anchor is None else entry.anchor.value,
        "asked": entry.asked,
        "served": entry.served,
        "turns": entry.ledger.to_dict(),
        "outcome_reasons": entry.ledger.reasons,
        "flags": entry.flags,
        "cutoffs": {"count": entry.cutoffs.hit, "n": entry.cutoffs.n, "share": entry.cutoffs.share},
        "voice_to_voice_ms": entry.voice_to_voice.to_dict(),
        "voice_to_voice_p95_at_most_ms": entry.p95_at_most,
        "budget": entry.budget.to_dict(),
        "stages_ms": _summaries(entry.stages),
        "stages_at_p50_ms": _means(entry.near_p50),
        "stages_at_p95_ms": _means(entry.near_p95),
        "stages_at_p50": _near(entry.near_p50),
        "stages_at_p95": _near(entry.near_p95),
        "work_ms": _summaries(entry.work),
        "ttft_ms": entry.ttft.to_dict(),
        "ttfat_ms": entry.ttfat.to_dict(),
        "slots": [slot.to_dict() for slot in entry.slots],
        "headline_tokens": {slot: headline.to_dict() for slot, headline in entry.headlines.items()},
        "tokens_over_ttft": [sweep.to_dict() for sweep in entry.sweeps],
        "decode_rate_tok_s": entry.decode_rate.to_dict(),
        "inter_token_ms": entry.gaps.to_dict(),
        "tokens_per_delta": entry.tokens_per_delta,
        "token_counts": entry.token_counts,
        "speech_sources": entry.speech_sources,
        "wer": {
            **entry.wer.to_dict(),
            "by_condition": {name: found.to_dict() for name, found in entry.wer_by_condition.items()},
        },
        "answers": entry.answers.to_dict(),
        "usd_per_turn": entry.usd_per_turn.to_dict(),
        "usd_per_1000_turns": None if entry.usd_per_turn.mean is None else 1000 * entry.usd_per_turn.mean,
        "usd_total": entry.usd_total,
        "speculation": entry.speculation.to_dict(),
        "lag_ms": entry.lag.to_dict(),
        "load": entry.load.to_dict(),
        "waveform_difference_ms": entry.waveform_difference.to_dict(),
        "pipecat_ms": _summaries(entry.pipecat),
        "samples": entry.samples,
        "warmup_voice_to_voice_ms": list(entry.warmup),
        "cold_connections": {
            "ttfat_ms": entry.cold_ttfat.to_dict(),
            "connect_ms": entry.cold_connect.to_dict(),
        },
        "reasons": reasons_of(entry),
    }


def _summaries(found: dict[str, Summary]) -> dict[str, Any]:
    return {name: summary.to_dict() for name, summary in found.items()}


def _means(means: StageMeans | None) -> dict[str, float] | None:
    return None if means is None else means.stages


def _near(means: StageMeans | None) -> dict[str, float] | None:
    """Over how many turns the means go, and the V2V that they add up to."""
    return None if means is None else {"n": means.n, "voice_to_voice_ms": means.total}


def reasons_of(entry: ModeReport) -> dict[str, str]:
    """Why a figure of the entry is empty: its name in `report.json` to the reason.

    A percentile that n does not allow is empty for that alone and has no entry here.
    """
    found: dict[str, str] = {}
    counted = entry.voice_to_voice
    nothing = _no_turns(entry)

    def tell(name: str, summary: Summary, reason: str) -> None:
        if summary.n == 0:
            found[name] = nothing or reason

    tell("voice_to_voice_ms", counted, "no turn has marks for both the end of speech and the first sound")
    for stage, summary in entry.stages.items():
        tell(f"stages_ms.{stage}", summary, "the mark that ends it never came")
    tell("ttft_ms", entry.ttft, "no turn has marks for both the request and the first token")
    tell("ttfat_ms", entry.ttfat, "no turn has marks for both the request and the first text")
    tell("decode_rate_tok_s", entry.decode_rate, "no reply came in two or more deltas")
    tell("inter_token_ms", entry.gaps, "no reply came in two or more deltas")
    tell("usd_per_turn", entry.usd_per_turn, "no price, or no usage from the provider")
    tell("lag_ms", entry.lag, "not measured")
    tell("waveform_difference_ms", entry.waveform_difference, "no recording was kept and measured")
    if entry.p95_at_most is None:
        found["voice_to_voice_p95_at_most_ms"] = f"not proven: n = {counted.n}, and it takes 59"
    if entry.budget.n == 0:
        found["budget"] = "no turn with speech was run to its end"
    if entry.near_p50 is None:
        found["stages_at_p50_ms"] = nothing or "no turn has stages"
    if entry.near_p95 is None:
        found["stages_at_p95_ms"] = nothing or f"n = {counted.n}, and p95 is shown from 20"
    if entry.wer.rate is None:
        found["wer"] = "no turn has a reference transcript"
    if entry.answers.reason is not None:
        found["answers"] = entry.answers.reason
    for slot in entry.slots:
        if slot.slot_ms is None:
            found[f"slots.{slot.slot}"] = "no turn shows what the other stages take"
        for name, summary in slot.delivered.items():
            tell(f"slots.{slot.slot}.{name}", summary, _no_delivery(name))
    for slot_name, headline in entry.headlines.items():
        if headline.measured is None:
            found[f"headline_tokens.{slot_name}.measured"] = "no measured decode rate"
        if headline.published is None:
            found[f"headline_tokens.{slot_name}.published"] = "nobody published a decode rate for this mode"
    return found


def _no_turns(entry: ModeReport) -> str | None:
    """Why nothing at all was measured; None where turns count."""
    completed = entry.ledger.outcomes["completed"]
    if completed == 0:
        return "no turn was completed"
    if completed == entry.voice_to_voice.excluded:
        return "all completed turns are kept out by a flag"
    return None


def _no_delivery(name: str) -> str:
    if name in ("words", "sentences", "speech_s"):
        return "no reply's text and deltas were kept"
    return "no reply's deltas were kept"
