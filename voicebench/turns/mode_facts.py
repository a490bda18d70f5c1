"""What `run.json` keeps of a mode, from its row in the catalogue or the config."""

from __future__ import annotations

from voicebench.plan.modes import Mode
from voicebench.turns.run_folder import ModeFacts


def mode_facts(mode: Mode) -> ModeFacts:
    """The mode's kind, model, options and published figures, each with its source."""
    rate = mode.decode_rate_tok_s
    told = mode.model_dump(mode="json", exclude_none=True)
    if mode.members:
        told["members"] = [member.id for member in mode.members]
        told["rule"] = told["settings"]
    if mode.attempts == 1:
        del told["attempts"]
    kept = ("provider", "api", "price", "ttft_ms", "quality", "status", "sibling", "stand_in", "tokenizer")
    made_of = ("members", "rule", "attempts", "tools")
    return ModeFacts(
        kind=mode.kind,
        model=mode.model,
        asked=mode.options,
        published_decode_tok_s=None if rate is None else rate.value,
        published_source=None if rate is None else rate.source,
        assumed=rate is not None and rate.assumed,
        **{name: told[name] for name in (*kept, *made_of) if told.get(name)},
    )
