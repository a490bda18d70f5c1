"""The text deltas of one reply, packed: a long run holds millions of them.

To its readers it is a tuple of (instant, characters, tokens): read, compared and written as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct, pack
from struct import error as StructError
from typing import Any, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Delta = tuple[int, int, float]
"""Ns from the slot's start (negative: ahead of it), characters, tokens."""

_ROW = Struct("ddd")


class Deltas(Sequence[Delta]):
    """An immutable sequence of deltas. Instants are exact up to 104 days (2**53 ns) from the slot's start.

    Raises ValueError for a number beyond what a double holds.
    """

    __slots__ = ("packed",)

    packed: bytes
    """Three doubles a delta, in this machine's byte order: instant, characters, tokens."""

    def __init__(self, deltas: Iterable[Delta] = ()) -> None:
        values = tuple(chain.from_iterable(deltas))
        try:
            self.packed = pack(f"{len(values)}d", *values)
        except (OverflowError, StructError) as error:
            raise ValueError("a delta holds a number beyond all measure") from error

    def __len__(self) -> int:
        return len(self.packed) // _ROW.size

    def __iter__(self) -> Iterator[Delta]:
        return ((int(at), int(count), tokens) for at, count, tokens in _ROW.iter_unpack(self.packed))

    @overload
    def __getitem__(self, place: int) -> Delta: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Delta, ...]: ...
    def __getitem__(self, place: int | slice) -> Delta | tuple[Delta, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        at, count, tokens = _ROW.unpack_from(self.packed, _ROW.size * range(len(self))[place])
        return int(at), int(count), tokens

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Deltas):
            return self.packed == other.packed
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validated and written as a tuple of tuples; one that is packed already is taken as it is."""
        plain = handler.generate_schema(tuple[Delta, ...])

        def taken(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Deltas:
            return value if isinstance(value, Deltas) else cls(validate(value))

        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(cls, plain),
            python_schema=core_schema.no_info_wrap_validator_function(taken, plain),
            serialization=core_schema.plain_serializer_function_ser_schema(tuple, return_schema=plain),
        )
