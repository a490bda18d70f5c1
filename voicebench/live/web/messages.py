"""What the page and the server say to each other over the socket, checked as it comes in.

Text is JSON with a `type`; binary is sound: two 64-bit floats (little-endian), then 16-bit samples. From the
page the floats are the frame of the audio context at which the block began and the page's instant in ms at
which it came; to the page they are the number of the first sample and 0.
"""

from __future__ import annotations

import struct
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

HEAD = struct.Struct("<dd")
MOST_BYTES = 64 * 1024
"""No message of the page is longer."""
LOWEST_RATE, HIGHEST_RATE = 8_000, 192_000

Instant = Annotated[float, Field(ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0, le=2**52)]
Latency = Annotated[float, Field(ge=0, le=10_000)]


class Refused(Exception):
    """The page said something that has no meaning."""


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hello(_Told):
    """The person pressed Start: the microphone is open. `rate` is the audio context's, in Hz."""

    type: Literal["hello"]
    rate: Annotated[int, Field(ge=LOWEST_RATE, le=HIGHEST_RATE)]
    base_latency_ms: Latency | None = None
    input_latency_ms: Latency | None = None
    """What the browser says of the microphone's own latency; None: nothing."""
    microphone: Annotated[str, Field(max_length=300)] = ""
    browser: Annotated[str, Field(max_length=300)] = ""
    echo_cancellation: bool = False


class Pong(_Told):
    """A ping's answer."""

    type: Literal["pong"]
    id: Count
    at_ms: Instant


class Stamp(_Told):
    """At `now_ms` the audio context stood at `frame`, which sounds `lead_ms` later; None: unknown."""

    type: Literal["stamp"]
    now_ms: Instant
    frame: Count
    lead_ms: Annotated[float, Field(ge=-10_000, le=10_000)] | None = None


class PlayedSamples(_Told):
    """So many samples from number `first` on were played, from `frame` of the audio context on."""

    type: Literal["played"]
    first: Count
    count: Annotated[int, Field(gt=0, le=2**20)]
    frame: Count


class Flushed(_Told):
    """What was waiting was dropped."""

    type: Literal["flushed"]
    id: Count


class Wish(_Told):
    """A button was pressed. `mode` belongs to `mode`, `on` to `mute`."""

    type: Literal["wish"]
    what: Literal["mode", "repeat", "mute", "end"]
    mode: Annotated[str, Field(max_length=300)] | None = None
    on: bool | None = None


Told = Hello | Pong | Stamp | PlayedSamples | Flushed | Wish
_TOLD: TypeAdapter[Told] = TypeAdapter(Annotated[Told, Field(discriminator="type")])


def told(text: str) -> Told:
    """A text message of the page. Raises Refused."""
    try:
        return _TOLD.validate_json(text)
    except ValidationError as error:
        raise Refused("a message without a meaning") from error


def heard(data: bytes) -> tuple[int, float, NDArray[np.int16]]:
    """A block of the microphone: frame, the page's instant in ms, samples. Raises Refused."""
    if len(data) < HEAD.size + 2 or len(data) % 2:
        raise Refused("a block of sound of no length")
    frame, at_ms = HEAD.unpack_from(data)
    if not (0 <= frame < 2**52 and 0 <= at_ms < 1e12):
        raise Refused("a block of sound of no time")
    return int(frame), at_ms, np.frombuffer(data, dtype="<i2", offset=HEAD.size)


def to_play(first: int, samples: NDArray[np.int16]) -> bytes:
    """Sound for the page."""
    return HEAD.pack(float(first), 0.0) + samples.astype("<i2", copy=False).tobytes()
