"""Values of a pipeline as far as an export knows them: plain where settled, else texts with gaps.

What a gap stands for is known only to the engine that will run the pipeline: the id of the run, its user, the item of
a loop. Filling is one pass, as in a run: a value that looks like a template is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from paddleflow.domain.runs import Value
from paddleflow.planning.templates import TEMPLATE, Missing, Ref, ref_of, spell, whole


class Kind(Enum):
    RUN_ID = "run id"
    USER_NAME = "user name"
    ITEM = "item"
    """Of the loop of the node ``of``."""
    PARENT = "parent"
    """The value ``of`` of the dag around: a parameter."""
    OWN = "own"
    """The value ``of`` of the step itself: a parameter or the path of an artifact."""


@dataclass(frozen=True, slots=True)
class Gap:
    kind: Kind
    of: str = ""


@dataclass(frozen=True, slots=True)
class Gapped:
    """A text with gaps; if it is one gap and nothing else, a value of any type."""

    parts: tuple[str | Gap, ...]

    @property
    def only(self) -> Gap | None:
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Gap) else None


Symbolic: TypeAlias = "Value | Gapped"


def substitute(text: str, lookup: Callable[[Ref], Symbolic | Missing]) -> Symbolic:
    """The text with its templates replaced; a text that is one template becomes what it stands for, type and all."""
    only = whole(text)
    if only is not None:
        value = lookup(only)
        return text if isinstance(value, Missing) else value
    pieces: list[str | Gap] = []
    end = 0
    for match in TEMPLATE.finditer(text):
        pieces.append(text[end : match.start()])
        value = lookup(ref_of(match))
        pieces += [match[0]] if isinstance(value, Missing) else parts_of(value)
        end = match.end()
    pieces.append(text[end:])
    return joined(pieces)


def parts_of(value: Symbolic) -> tuple[str | Gap, ...]:
    return value.parts if isinstance(value, Gapped) else (spell(value),)


def joined(pieces: list[str | Gap]) -> Symbolic:
    """Neighbouring texts become one; without gaps it is a plain text."""
    merged: list[str | Gap] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "":
            merged.append(piece)
    if any(isinstance(piece, Gap) for piece in merged):
        return Gapped(tuple(merged))
    return "".join(piece for piece in merged if isinstance(piece, str))
