"""`voicebench measure`: the voice-to-voice latency of any two-channel recording of a call."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voicebench.errors import BadRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from voicebench.audio.clip import Clip
    from voicebench.cli.measured import Measured

MAX_SECONDS = 3600.0
MAX_BYTES = 2 << 30
SHOWN_SILENCES = 3


class Channel(enum.StrEnum):
    """On which channel the user is."""

    LEFT = "left"
    RIGHT = "right"


def measure(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A recording of a call, a side on each channel.")
    ],
    user_channel: Annotated[
        Channel, typer.Option("--user-channel", help="Where the user is; the agent is on the other.")
    ] = Channel.LEFT,
    budget_ms: Annotated[
        float, typer.Option("--budget-ms", min=1, max=60_000, help="What each wait is held against.")
    ] = 800.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")
    ] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write one line a turn to this file.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the call into this .svg or .png file.")
    ] = None,
) -> None:
    """Measure the waits in a recorded call, from its samples alone."""
    from rich.console import Console

    from voicebench.audio.decode import decode
    from voicebench.audio.names import printable
    from voicebench.audio.waveform import conversation
    from voicebench.cli.measured import figures, to_csv, to_json
    from voicebench.turns.durable import strict_json

    if not math.isfinite(budget_ms):
        raise BadRequest(f"--budget-ms {budget_ms}: this is no number of milliseconds.", "Give one, as 800.")
    _check_outputs(file, csv, picture)
    clip = decode(file, max_seconds=MAX_SECONDS, max_bytes=MAX_BYTES)
    user, agent = _sides(clip, user_channel, printable(file))
    call = conversation(user, agent, clip.sample_rate)
    if any(caveat.code == "channels_alike" for caveat in call.caveats):
        raise BadRequest(
            f"{printable(file)}: both channels hold the same sound, so that nobody can be told apart.",
            "Record each side of the call on a channel of its own, and export without mixing them.",
        )
    measured = figures(
        call,
        file=printable(file),
        user_channel=user_channel.value,
        budget_ms=budget_ms,
        clip_caveats=clip.caveats,
    )
    console = Console(stderr=as_json, highlight=False)
    show(measured, console)
    if csv is not None:
        _write(csv, to_csv(measured))
    if picture is not None:
        _write(picture, _drawn(measured, user, agent, png=picture.suffix.lower() == ".png"))
    if as_json:
        typer.echo(strict_json(to_json(measured)).decode())


def _check_outputs(file: Path, csv: Path | None, picture: Path | None) -> None:
    """Refuse what could not be written, or would overwrite the recording, before anything is done."""
    if picture is not None and picture.suffix.lower() not in (".svg", ".png"):
        raise BadRequest(f"--picture {picture}: a picture is written as .svg or .png.", "Name it so.")
    for option, path in (("--csv", csv), ("--picture", picture)):
        if path is None:
            continue
        if not path.parent.is_dir():
            raise BadRequest(f"{option} {path}: there is no folder {path.parent}.", "Make it first.")
        if path.is_dir():
            raise BadRequest(f"{option} {path}: this is a folder.", "Name a file in it.")
        if path.exists() and file.exists() and path.samefile(file):
            raise BadRequest(f"{option} {path}: this is the recording itself.", "Name another file.")


def _sides(clip: Clip, user_channel: Channel, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The user's and the agent's samples; a file of one channel or of more than two is refused."""
    if clip.channels == 1:
        raise BadRequest(
            f"{name}: one channel only; user and agent cannot be told apart in it.",
            "Record the call with the user on one channel and the agent on the other; two files of the same "
            "start join with:  ffmpeg -i user.wav -i agent.wav -filter_complex amerge=inputs=2 call.wav",
        )
    if clip.channels > 2:
        raise BadRequest(
            f"{name}: {clip.channels} channels; which two are the user and the agent is not known.",
            "Export those two, the user's first:  "
            "ffmpeg -i FILE -filter_complex 'pan=stereo|c0=c0|c1=c1' call.wav",
        )
    left, right = clip.samples[:, 0].copy(), clip.samples[:, 1].copy()
    return (left, right) if user_channel is Channel.LEFT else (right, left)


def _write(path: Path, content: bytes) -> None:
    """Write an output file; a disk's refusal is told in words."""
    from voicebench.audio.names import printable

    try:
        path.write_bytes(content)
    except OSError as error:
        raise BadRequest(f"{path}: cannot be written ({error.strerror}).", "Name another place.") from error
    typer.echo(f"wrote {printable(path)}", err=True)


def _drawn(measured: Measured, user: NDArray[np.float32], agent: NDArray[np.float32], *, png: bool) -> bytes:
    """The call's picture."""
    from voicebench.audio.drawing import to_png, to_svg
    from voicebench.audio.picture import draw_conversation

    drawing = draw_conversation(
        measured.call,
        user,
        agent,
        title=Path(measured.file).name,
        summary=headline(measured),
        budget_ms=measured.budget_ms,
    )
    return to_png(drawing) if png else to_svg(drawing).encode()


def headline(measured: Measured) -> str:
    """The call in one line: median and high percentile, and the share within the budget."""
    from voicebench.analysis.statistics import wilson

    figures = measured.voice_to_voice
    if figures.p50 is None:
        every = measured.all_answered
        waits = "No wait that counts."
        if every.p50 is not None:
            waits += f" With every turn the median is {every.p50:,.0f} ms (n = {every.n})."
    else:
        waits = f"Voice-to-voice latency: median {figures.p50:,.0f} ms"
        if figures.ci95_p50 is not None:
            waits += f" [{figures.ci95_p50[0]:,.0f} to {figures.ci95_p50[1]:,.0f}]"
        for label, value in (("p95", figures.p95), ("p90", figures.p90), ("at most", figures.max)):
            if value is not None:
                waits += f", {label} {value:,.0f} ms"
                break
        waits += f" (n = {figures.n})."
    interval = wilson(measured.hits, measured.held)
    if interval is None:
        return waits
    share = (
        f" Within {measured.budget_ms:,g} ms: {measured.hits} of {measured.held} turns "
        f"({measured.hits / measured.held:.0%}, 95 % interval {interval[0]:.0%} to {interval[1]:.0%})."
    )
    return waits + share


def show(measured: Measured, console: Console) -> None:
    """The result for a reader: the turns, the figures, what else happened, and what to know of it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from voicebench.cli.measured import reason_text, state_of

    call = measured.call
    console.print(Text(f"{measured.file}  ({clock(call.duration_s)}, user on the {measured.user_channel})"))
    if call.turns:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("turn", "user ends", "agent begins", "wait ms", f"within {measured.budget_ms:g}"):
            table.add_column(name, justify="right")
        table.add_column("note")
        for number, turn in enumerate(call.turns, start=1):
            wait = turn.voice_to_voice_ms
            within = "" if wait is None else "yes" if 0 <= wait <= measured.budget_ms else "no"
            notes = [] if state_of(turn) == "counted" else [state_of(turn).replace("_", " ")]
            notes += [told for r in turn.reasons if (told := reason_text(r)) not in notes]
            if turn.uncertainty_ms >= 20 and wait is not None:
                notes.append(f"± {turn.uncertainty_ms:.0f} ms")
            table.add_row(
                str(number),
                clock(turn.user_end_s),
                "" if turn.agent_onset_s is None else clock(turn.agent_onset_s),
                "" if wait is None else f"{wait:,.0f}",
                within,
                Text(", ".join(notes)),
            )
        console.print(table)
    console.print(Text(headline(measured), style="bold"), soft_wrap=True)
    for line in (*_events(measured), *(f"• {caveat.text}" for caveat in measured.caveats)):
        console.print(Text(line), soft_wrap=True)


def _events(measured: Measured) -> list[str]:
    """Overlaps, interruptions and silences, a line for each kind that occurred."""
    call = measured.call
    lines: list[str] = []
    if call.overlaps:
        total = sum(o.duration_s for o in call.overlaps)
        lines.append(f"Stretches in which both spoke: {len(call.overlaps)}, {total:.1f} s in all.")
    by_user = [i for i in call.interruptions if i.by == "user"]
    if by_user:
        told = ", ".join(f"{clock(i.at_s)} (agent silent after {i.stop_ms or 0:,.0f} ms)" for i in by_user)
        lines.append(f"The user broke in at {told}.")
    by_agent = [i for i in call.interruptions if i.by == "agent"]
    if by_agent:
        lines.append(f"The agent cut in on the user at {', '.join(clock(i.at_s) for i in by_agent)}.")
    if call.silences:
        told = ", ".join(
            f"{s.duration_s:.1f} s at {clock(s.start_s)} before the {s.before}"
            for s in call.silences[:SHOWN_SILENCES]
        )
        lines.append(
            f"Longest silences: {told}. Silence before the first word: {call.leading_silence_s:.1f} s."
        )
    return lines


def clock(seconds: float) -> str:
    """A time within the recording, as minutes and seconds to the hundredth: "1:05.25"."""
    hundredths = round(seconds * 100)
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02d}.{hundredths % 100:02d}"
