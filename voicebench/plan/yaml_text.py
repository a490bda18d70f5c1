"""YAML from files that anyone may have written: plain values only, in bounded time and memory."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MOST_VALUES = 250_000
"""A file of more values, keys included, is refused: each takes a kilobyte while it is read."""
MOST_UNFOLDED = 100_000
"""A file whose aliases stand for more values than this is refused."""
MOST_NESTED = 64
MOST_DIGITS = 1000
"""A number of more characters is refused: base 60 makes one of them cost the square of its length."""
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class _Bounded(yaml.SafeLoader):
    """The safe loader, which looks over the document before it makes values of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._composed = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """The next node of the document. Raises MarkedYAMLError where there are too many."""
        self._composed += 1
        node: Node | None = super().compose_node(parent, index)
        if node is not None and self._composed > MOST_VALUES:
            raise _refused(f"there are more than {MOST_VALUES:,} values", node)
        return node

    def get_single_node(self) -> Node | None:
        """The document's root. Raises MarkedYAMLError where it unfolds too far."""
        root: Node | None = super().get_single_node()
        if root is not None:
            _Measure().of(root)
        return root


class _Measure:
    """How many values nodes stand for and how deep they nest, aliases unfolded. Each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Node, tuple[int, int, int]] = {}
        self._open: set[Node] = set()

    def of(self, node: Node) -> tuple[int, int, int]:
        """The number of values in `node`, how many of them aliases stand for, and its height, 1 for a plain
        value."""
        if node in self._known:
            return self._known[node]
        if node in self._open:
            raise _refused("an alias stands inside its own value", node)
        if isinstance(node, ScalarNode) and node.tag in _NUMBERS and len(node.value) > MOST_DIGITS:
            raise _refused(f"a number has more than {MOST_DIGITS} characters", node)
        self._open.add(node)
        values, by_alias, below = 1, 0, 0
        for part in _parts(node):
            again = part in self._known
            count, aliased, height = self.of(part)
            values += count
            by_alias += count if again else aliased
            below = max(below, height)
        self._open.discard(node)
        if by_alias > MOST_UNFOLDED:
            raise _refused(f"aliases stand for more than {MOST_UNFOLDED:,} values", node)
        if below >= MOST_NESTED:
            raise _refused(f"values are nested more than {MOST_NESTED} deep", node)
        self._known[node] = values, by_alias, below + 1
        return self._known[node]


def _parts(node: Node) -> list[Node]:
    if isinstance(node, SequenceNode):
        return list(node.value)
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return []


def _refused(what: str, node: Node) -> MarkedYAMLError:
    return MarkedYAMLError(problem=what, problem_mark=node.start_mark)


def plain_yaml(text: str) -> Any:
    """The value of a YAML document: None, text, numbers, dates, lists and mappings.

    Raises yaml.YAMLError for what is no plain YAML, also where its aliases unfold beyond all measure, and
    ValueError or RecursionError, which the library lets through, for impossible dates and endless nesting.
    """
    loader = _Bounded(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
