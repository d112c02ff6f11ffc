"""Templates: ``{{ name }}`` and ``{{ node.name }}`` inside texts, found and filled in.

Filling is one pass over the text as it was written: what a template stands for is inserted as it is, so a value that
itself looks like a template stays what it is. How long a text may become is limited: values may be made of values, and
a few lines that double one another a few dozen times would fill any memory. Whatever does not have the shape of a
template is ordinary text. Which templates a field may use, and what they mean, is not known here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value

TEMPLATE: Final = re.compile(r"\{\{[ \t\r\n]*+(?:([a-zA-Z0-9_-]++)\.)?([a-zA-Z0-9_]++)[ \t\r\n]*+\}\}")
"""Possessive throughout: no text makes it look at a character more than a few times."""

LONGEST: Final = 128 * 1024
"""Characters of a text after filling: Linux gives no process an argument or a variable that is longer."""


_SHOWN: Final = 80


class Missing(Enum):
    """The answer of a lookup that does not know a reference."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Ref:
    """One template."""

    node: str
    """Whose value it is; empty: of the node that has the template."""
    name: str
    text: str
    """As it was written, braces included."""


Lookup: TypeAlias = Callable[[Ref], "Value | Missing"]


def references(text: str) -> tuple[Ref, ...]:
    """Every template of a text, in order, as often as it is there."""
    if "{{" not in text:
        return ()
    return tuple(ref_of(match) for match in TEMPLATE.finditer(text))


def whole(text: str) -> Ref | None:
    """The template that the text consists of, if it is one and nothing else."""
    match = TEMPLATE.fullmatch(text)
    return ref_of(match) if match else None


def fill(text: str, lookup: Lookup) -> Value:
    """The text with its templates replaced; a text that is one template becomes its value, type and all.

    Raises Invalid when it would become too long.
    """
    if "{{" not in text:
        return text
    only = whole(text)
    if only is not None:
        value = lookup(only)
        return text if isinstance(value, Missing) else value
    length = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal length
        value = _text_of(ref_of(match), lookup)
        length += len(value)
        if length > LONGEST:
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            raise Invalid(
                f"[{shown}] would have more than {LONGEST} characters once its templates are filled in; "
                "pass large values in a file, as an artifact"
            )
        return value

    return TEMPLATE.sub(replaced, text)


def spell(value: Value) -> str:
    """A value as text: numbers in plain decimals (never 1e-05), lists like ``[1 2 3]``, nothing as nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _spell_list(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _spell_float(value)
    return "" if value is None else str(value)


def ref_of(match: re.Match[str]) -> Ref:
    return Ref(match[1] or "", match[2], match[0])


def _text_of(ref: Ref, lookup: Lookup) -> str:
    value = lookup(ref)
    return ref.text if isinstance(value, Missing) else spell(value)


def _spell_float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _spell_list(items: list[Value]) -> str:
    """With a stack of its own: how deep a list is, is for its writer to say."""
    pieces: list[str] = ["["]
    open_lists: list[Iterator[Value]] = [iter(items)]
    is_first = True
    while open_lists:
        item = next(open_lists[-1], MISSING)
        if isinstance(item, Missing):
            open_lists.pop()
            pieces.append("]")
            is_first = False
            continue
        if not is_first:
            pieces.append(" ")
        is_first = isinstance(item, list)
        if isinstance(item, list):
            pieces.append("[")
            open_lists.append(iter(item))
        else:
            pieces.append(spell(item))
    return "".join(pieces)
