"""The emulated modes of a run: a server of our own that replays their published speed on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicebench.emulator import faults
from voicebench.emulator.process import EmulatorProcess
from voicebench.emulator.process import start as start_process
from voicebench.emulator.timing import TimingScript
from voicebench.errors import BadRequest
from voicebench.plan.modes import Mode, with_members

PATHS = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1", "openai-responses-ws": "/v1"}
"""The APIs that the emulator serves, and what each SDK wants behind its host."""

HEADERS_SHARE, PREAMBLE_SHARE = 0.25, 0.3
"""Where nobody published more than a time to first token: the response's headers leave after this share of
it, its opening events after that one. Assumed, as no vendor tells them; neither moves a mark."""


@dataclass(frozen=True)
class Emulation:
    """A running emulator and the modes of a run, those that are emulated pointed at it."""

    modes: tuple[Mode, ...]
    process: EmulatorProcess

    def stop(self) -> None:
        """End the emulator. Its log file is whole then."""
        self.process.stop()


def is_served_here(mode: Mode) -> bool:
    """Does a run start an emulator for this mode?

    Not for one that names an address itself, or whose stage makes its replies up without a server.
    """
    return mode.kind == "emulated" and mode.api in PATHS and "base_url" not in mode.settings


def placed(modes: Sequence[Mode], port: int = 0) -> tuple[Mode, ...]:
    """The modes, those that a run emulates with the address of an emulator on this machine's `port`.

    Port 0 stands for one that is not known yet: settings can be checked with it. In the request an emulated
    mode is called by its id, under which the emulator has its timing.
    """
    return tuple(_placed(mode, port) for mode in modes)


def _placed(mode: Mode, port: int) -> Mode:
    if mode.members:
        return mode.model_copy(update={"members": placed(mode.members, port)})
    if not is_served_here(mode):
        return mode
    fault = mode.emulation.get("fault")
    model = f"{mode.id}!{fault}" if fault else mode.id
    here: dict[str, Any] = {"base_url": f"http://127.0.0.1:{port}{PATHS[mode.api]}", "model": model}
    return mode.model_copy(update={"settings": {**mode.settings, **here}})


def script_of(mode: Mode) -> TimingScript:
    """How the emulator answers as this mode: at its published rate, after its time to first token.

    `emulation` adds or replaces fields of the timing script; its `fault` is planted in every reply. Raises
    BadRequest where rate or time to first token are not known and no recorded stream stands in, and for a
    field or a fault that there is none of.
    """
    fields: dict[str, Any] = {
        "name": mode.id,
        "served_speed": mode.options.get("speed", "standard"),
    }
    if "replay" not in mode.emulation:
        rate, first = mode.decode_rate_tok_s, mode.ttft_ms
        if rate is None or first is None:
            missing = "decode_rate_tok_s" if rate is None else "ttft_ms"
            raise BadRequest(
                f"The mode {mode.id} is emulated, but has no {missing}.",
                "Give the published figure, or mark it assumed; or give emulation: {replay: FILE}.",
            )
        fields |= {
            "rate_tok_s": rate.value,
            "first_text_ms": first.value,
            "headers_ms": first.value * HEADERS_SHARE,
            "preamble_ms": first.value * PREAMBLE_SHARE,
        }
    own = {name: value for name, value in mode.emulation.items() if name != "fault"}
    try:
        faults.parse(str(mode.emulation.get("fault") or ""))
        return TimingScript.from_dict({**fields, **own}, Path.cwd())
    except BadRequest as problem:
        raise BadRequest(f"mode {mode.id}, emulation: {problem.what}", problem.remedy) from None


def check(modes: Sequence[Mode]) -> None:
    """Refuse an emulated mode that could not be served. Raises BadRequest."""
    for mode in with_members(modes):
        if is_served_here(mode):
            script_of(mode)


def start(modes: Sequence[Mode], seed: int, log: Path | None = None) -> Emulation | None:
    """Start an emulator for the emulated ones among `modes`; None where there are none.

    The same seed gives the same replies at the same times. `log` is a file for what it wrote when. The
    emulator ends with `stop`, or with this process, however that ends. Raises VoicebenchError where it does
    not come up.
    """
    scripts = [script_of(mode) for mode in with_members(modes) if is_served_here(mode)]
    if not scripts:
        return None
    process = start_process(scripts, seed=seed, log=log)
    return Emulation(placed(modes, process.port), process)
