"""How much a row holds: what it was given, in characters."""

from __future__ import annotations

from collections.abc import Iterable

from paddleflow.domain.runs import RunNode, Value

_PLAIN = 8
"""A number, or the frame around a value."""


def bulk_of(row: RunNode) -> int:
    texts = (row.inputs.values(), row.outputs.values(), row.env.values(), (row.command,))
    return sum(len(text) for some in texts for text in some) + bulk_of_values(row.parameters.values())


def bulk_of_values(values: Iterable[Value]) -> int:
    bulk = 0
    left = list(values)
    while left:
        value = left.pop()
        bulk += len(value) if isinstance(value, str) else _PLAIN
        if isinstance(value, list):
            left.extend(value)
    return bulk
