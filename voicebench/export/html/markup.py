"""HTML and SVG as trees of text in which nothing but our own tags can be markup."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from voicebench.export.texts import one_line, shortened
from voicebench.turns.durable import whole_text

_VOID = frozenset({"meta", "link", "input", "br"})
_PLAIN = re.compile(r"[\w.#:/-]*\w", re.ASCII)
"""An attribute's value that needs no quotes."""
_DRAWN = frozenset({"path", "rect", "circle", "use"})


class Safe(str):
    """Markup that is finished: made by `tag`, `text` or `join` and by nothing else."""

    __slots__ = ()


Child = str | int | float | None
"""What may stand in an element: `Safe` markup as it is, any other text escaped, None as nothing."""


def text(value: object) -> Safe:
    """`value` as text: on one line, without control characters and bidirectional overrides, escaped.

    White space at an end stays as one space.
    """
    told = str(value)
    ahead, behind = (" " if told[place].isspace() else "" for place in (0, -1)) if told else ("", "")
    line = one_line(whole_text(told))
    return Safe(f"{ahead}{escape(line, quote=True)}{behind}" if line else ahead)


def tight(value: str) -> Safe:
    """`value` as text in which no unit stands on another line than its figure."""
    glued = re.sub(r"(?<=[\d\]]) (?=%|ms)", "&nbsp;", text(value))
    return Safe(re.sub(r"(?<=\d)–(?=\d)", "–&#8288;", glued))


def join(*children: Child) -> Safe:
    """The children one after another."""
    return Safe("".join(_child(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: Any) -> Safe:
    """An element. An attribute that is None or False is left out, True stands bare.

    In names `_` is `-`, one at the end falls away (`class_`). Numbers are written short.
    """
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Safe(f"<{name}{told}>")
    if name in _DRAWN:
        return Safe(f"<{name}{told} />" if told[-1:] not in ('"', "") else f"<{name}{told}/>")
    return Safe(f"<{name}{told}>{join(*children)}</{name}>")


def raw(markup: str) -> Safe:
    """A constant of our own (styles, script) or JSON whose angle brackets are escaped, as it is."""
    return Safe(markup)


def cut(value: str, length: int = 600) -> str:
    """`value` on one line, cut at `length` characters."""
    return shortened(whole_text(value), length)


def user_text(value: str, length: int = 600) -> Safe:
    """What a person, a model or a file's name said: isolated in its direction, cut at `length` characters."""
    return tag("bdi", cut(value, length))


def short(value: float) -> str:
    """A coordinate with at most one decimal."""
    told = f"{value:.1f}".removesuffix(".0")
    return "0" if told == "-0" else told


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Safe):
        return child
    return text(child)


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = short(value)
    shown = text(value)
    return f" {name}={shown}" if _PLAIN.fullmatch(shown) else f' {name}="{shown}"'
