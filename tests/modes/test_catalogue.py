"""The catalogue of modes: well-formed, with a source for each figure, and the rows that people rely on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from voicebench import emulated
from voicebench.errors import BadRequest
from voicebench.plan import registry
from voicebench.plan.config import PluginSpec, validated
from voicebench.plan.modes import NOT_ASKABLE, Mode, Published, catalogue, find_mode
from voicebench.plan.prompts import slot_prompts, slot_system_prompt
from voicebench.turns.tokens import TOKENIZERS

EACH = pytest.mark.parametrize("mode", catalogue().values(), ids=lambda mode: mode.id)


def figures(mode: Mode) -> Iterator[Published]:
    """All published figures of a mode."""
    yield from (figure for figure in (mode.decode_rate_tok_s, mode.ttft_ms) if figure is not None)
    yield from mode.quality.values()


def is_date(text: str) -> bool:
    """Is this a day, ISO 8601?"""
    try:
        return date.fromisoformat(text).year >= 2025
    except ValueError:
        return False


@EACH
def test_every_figure_names_its_source(mode: Mode) -> None:
    """A figure has a source and a date, or is marked as assumed; nothing is zero for unknown."""
    for figure in figures(mode):
        assert figure.source
        assert figure.value > 0
        assert figure.assumed or is_date(figure.date)
    if mode.price is not None:
        assert mode.price.source
        assert is_date(mode.price.date)
        prices = (mode.price.input, mode.price.output, mode.price.cache_read, mode.price.cache_write)
        assert all(price is None or price > 0 for price in prices)
        assert mode.price.output >= mode.price.input
    assert mode.source
    assert is_date(mode.date)


@EACH
def test_every_row_fits_its_plug_in(mode: Mode) -> None:
    """Kind, id, API, settings and vocabulary of a row go together, and its references lead somewhere."""
    provider, _, name = mode.id.partition("/")
    assert name
    assert mode.kind == {"local": "local", "emulated": "emulated"}.get(provider, "live")
    if mode.kind == "live":
        assert mode.provider == provider
    plugin = registry.find("llm", mode.api)
    [placed] = emulated.placed([mode])
    spec = PluginSpec(kind=placed.api, **placed.settings)
    settings = validated(plugin.settings, spec.settings, mode.id)
    keys = plugin.needs(settings).keys
    assert len(keys) == (1 if mode.kind == "live" else 0)
    assert plugin.ask is not None
    assert mode.tokenizer is None or mode.tokenizer in TOKENIZERS
    for other in (mode.sibling, mode.stand_in, mode.emulated_as):
        assert other is None or other in catalogue()
    if mode.sibling is not None:
        assert catalogue()[mode.sibling].kind == mode.kind
    if mode.stand_in is not None:
        assert catalogue()[mode.stand_in].kind == "live"
        assert catalogue()[mode.stand_in].status not in NOT_ASKABLE
    if mode.status in NOT_ASKABLE:
        assert mode.status_note
        assert mode.stand_in is not None


@pytest.mark.parametrize(
    ("mode_id", "rate", "first_ms", "prices"),
    [
        ("emulated/opus-4.6", 65, 200, (5, 25)),
        ("emulated/opus-4.6-fast", 170, 200, (30, 150)),
        ("emulated/gpt-5.3-codex", 66.7, 200, (1.75, 14)),
        ("emulated/gpt-5.3-codex-spark", 1000, 100, None),
    ],
)
def test_the_seed_modes_are_there_as_published(
    mode_id: str, rate: float, first_ms: float, prices: tuple[float, float] | None
) -> None:
    """The four emulated modes have their published rates and prices, and an assumed time to first token."""
    mode = catalogue()[mode_id]
    assert mode.decode_rate_tok_s is not None
    assert mode.ttft_ms is not None
    assert (mode.decode_rate_tok_s.value, mode.decode_rate_tok_s.assumed) == (rate, False)
    assert (mode.ttft_ms.value, mode.ttft_ms.assumed) == (first_ms, True)
    assert (None if mode.price is None else (mode.price.input, mode.price.output)) == prices
    script = emulated.script_of(mode)
    assert (script.rate_tok_s, script.first_text_ms) == (rate, first_ms)


def test_quality_stands_beside_speed() -> None:
    """Spark's speed and its lower score are told together."""
    codex, spark = (
        catalogue()[f"emulated/gpt-5.3-codex{tail}"].quality["terminal_bench_2"].value
        for tail in ("", "-spark")
    )
    assert (codex, spark) == (77.3, 58.4)
    assert catalogue()["emulated/gpt-5.3-codex-spark"].context_tokens == 128_000
    assert catalogue()["emulated/gpt-5.3-codex-spark"].image_input is False


@pytest.mark.parametrize(
    ("mode_id", "status", "replayed", "stand_in"),
    [
        (
            "openai/gpt-5.3-codex-spark",
            "partner-only",
            "emulated/gpt-5.3-codex-spark",
            "cerebras/gpt-oss-120b",
        ),
        (
            "anthropic/claude-opus-4-6-fast",
            "retired",
            "emulated/opus-4.6-fast",
            "anthropic/claude-opus-5-5-fast",
        ),
        ("anthropic/claude-opus-4-8-fast", "retired", None, "anthropic/claude-opus-5-5-fast"),
    ],
)
def test_what_cannot_be_asked_says_what_can(
    mode_id: str, status: str, replayed: str | None, stand_in: str
) -> None:
    """A retired or partner-only mode is refused with its status, its replayed form and a live stand-in."""
    with pytest.raises(BadRequest) as caught:
        find_mode(mode_id, {}, "c.yaml")
    said = str(caught.value)
    assert "c.yaml" in said
    assert status in said
    assert stand_in in said
    assert replayed is None or replayed in said
    assert catalogue()[mode_id].id == mode_id


def test_a_retired_mode_may_be_asked_on_purpose() -> None:
    """A config that states such a mode as its own asks for it; what was served is then held against it."""
    mine = catalogue()["anthropic/claude-opus-4-6-fast"].model_copy(update={"status": "available"})
    assert find_mode(mine.id, {mine.id: mine}) is mine


def test_an_unknown_mode_gets_a_near_one() -> None:
    """A slip of the pen is answered with the mode that was meant."""
    with pytest.raises(BadRequest, match=r"Did you mean 'emulated/opus-4\.6-fast'"):
        find_mode("emulated/opus-4-6-fast", {})


def test_the_slot_prompts_want_long_answers() -> None:
    """Every prompt has an id of its own and asks for more than any slot holds."""
    prompts = slot_prompts()
    assert len({prompt.id for prompt in prompts}) == len(prompts) >= 10
    assert all("at length" in prompt.text and "700 words" in prompt.text for prompt in prompts)
    assert "spoken" in slot_system_prompt()
