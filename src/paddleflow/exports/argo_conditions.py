"""Conditions as Argo understands them: the text of a task's ``when``.

Argo puts values into the text before it reads it, and does not know what type they have. So everything known is
written as a number or a quoted text; of the rest it must be clear from what it is compared with. What stays unclear,
or could be read as part of the expression, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never

from paddleflow.domain.runs import Value
from paddleflow.planning.condition_parser import (
    Chain,
    Choice,
    Constant,
    Group,
    Otherwise,
    Signed,
    Text,
    Tree,
    parse_condition,
    read_number,
)
from paddleflow.planning.templates import Ref, spell


class Sort(Enum):
    NUMBER = "number"
    TEXT = "text"
    TRUTH = "truth"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Later:
    """A value that Argo puts in: how it is written, and what it is known to be."""

    text: str
    sort: Sort = Sort.UNCLEAR


Operand: TypeAlias = "Value | Later"
Lookup: TypeAlias = Callable[[Ref], Operand]

_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGIC: Final = frozenset({"&&", "||"})


class NoCounterpart(ValueError):
    """The condition cannot be said in Argo; the message says why."""


def when(condition: str, lookup: Lookup) -> str:
    """Raises NoCounterpart."""
    return _told(parse_condition(condition), lookup, Sort.TRUTH)


def sort_of(value: Value) -> Sort:
    """What a value counts as where it stands by itself: a text that looks like a number is one."""
    if isinstance(value, bool) or (isinstance(value, str) and value.strip() in ("true", "false")):
        return Sort.TRUTH
    if isinstance(value, int | float) or (isinstance(value, str) and read_number(value.strip()) is not None):
        return Sort.NUMBER
    return Sort.TEXT


def _sort(tree: Tree, lookup: Lookup) -> Sort:
    match tree:
        case Constant():
            return Sort.TEXT if isinstance(tree.value, str) else sort_of(tree.value)
        case Text():
            if tree.is_quoted or len(tree.parts) > 1 or isinstance(tree.parts[0], str):
                return Sort.TEXT
            value = lookup(tree.parts[0])
            return value.sort if isinstance(value, Later) else sort_of(value)
        case Signed():
            return Sort.TRUTH if tree.signs[0] == "!" else Sort.NUMBER
        case Chain():
            sign = tree.rest[-1][0]
            if sign == "+":
                return _agreed(_sort(tree.first, lookup), _sort(tree.rest[0][1], lookup))
            return Sort.NUMBER if sign in ("-", "*", "/", "%", "**") else Sort.TRUTH
        case Choice():
            return _agreed(_sort(tree.yes, lookup), _sort(tree.no, lookup))
        case Otherwise():
            return _agreed(_sort(tree.wanted, lookup), _sort(tree.instead, lookup))
        case Group():
            return _agreed(*(_sort(item, lookup) for item in tree.items))
        case _:
            assert_never(tree)


def _agreed(*sorts: Sort) -> Sort:
    """What is unclear takes the sort of its neighbours."""
    known = {sort for sort in sorts if sort is not Sort.UNCLEAR}
    return known.pop() if len(known) == 1 else Sort.UNCLEAR


def _told(tree: Tree, lookup: Lookup, hint: Sort) -> str:
    match tree:
        case Constant():
            return _literal(tree.value)
        case Text():
            return _text(tree, lookup, hint)
        case Signed():
            inner = _told(tree.operand, lookup, Sort.TRUTH if tree.signs[-1] == "!" else Sort.NUMBER)
            return "".join(tree.signs) + f"({inner})"
        case Chain():
            return _chain(tree, lookup, hint)
        case Choice():
            test, yes, no = (
                _told(tree.test, lookup, Sort.TRUTH),
                _told(tree.yes, lookup, hint),
                _told(tree.no, lookup, hint),
            )
            return f"(({test}) ? ({yes}) : ({no}))"
        case Otherwise():
            raise NoCounterpart("it uses ??")
        case Group():
            return f"({', '.join(_told(item, lookup, hint) for item in tree.items)})"
        case _:
            assert_never(tree)


def _chain(tree: Chain, lookup: Lookup, hint: Sort) -> str:
    told, sort = "", _sort(tree.first, lookup)
    before: Tree = tree.first
    for number, (sign, operand) in enumerate(tree.rest):
        shared = _shared(sign, sort, _sort(operand, lookup), hint)
        left = _told(before, lookup, shared) if number == 0 else told
        told = _pair(left, sign, operand, lookup, shared)
        sort = Sort.TRUTH if sign in _COMPARISONS | _LOGIC | {"in", "=~", "!~"} else shared
    return told


def _shared(sign: str, left: Sort, right: Sort, hint: Sort) -> Sort:
    """What both operands of a sign are taken for."""
    if sign in _LOGIC:
        return Sort.TRUTH
    if sign in ("=~", "!~"):
        return Sort.TEXT
    if sign in _COMPARISONS or sign == "in":
        return _agreed(left, right)
    return _agreed(left, right, hint) if sign == "+" else Sort.NUMBER


def _pair(left: str, sign: str, operand: Tree, lookup: Lookup, shared: Sort) -> str:
    if sign == "in" and isinstance(operand, Group) and len(operand.items) == 1:
        sign, operand = "==", operand.items[0]  # Argo takes (a) for a, not for a list
    elif sign == "in" and not isinstance(operand, Group):
        raise NoCounterpart("what stands behind [in] must be a list like (a, b)")
    return f"({left} {sign} {_told(operand, lookup, shared)})"


def _text(tree: Text, lookup: Lookup, hint: Sort) -> str:
    if not tree.is_quoted and len(tree.parts) == 1 and isinstance(tree.parts[0], Ref):
        return _single(tree.parts[0], lookup, hint)
    told = ""
    for part in tree.parts:
        value = part if isinstance(part, str) else lookup(part)
        told += value.text if isinstance(value, Later) else _plain(spell(value))
    return f"'{told}'"


def _single(ref: Ref, lookup: Lookup, hint: Sort) -> str:
    value = lookup(ref)
    if not isinstance(value, Later):
        sort = sort_of(value)
        text = spell(value).strip()
        return _literal(text if sort is Sort.TEXT else text == "true" if sort is Sort.TRUTH else _number(text))
    sort = hint if value.sort is Sort.UNCLEAR else value.sort
    if sort is Sort.UNCLEAR:
        raise NoCounterpart(f"it is not clear whether {ref.text} is a number or a text; compare it with one of them")
    return f"'{value.text}'" if sort is Sort.TEXT else value.text


def _number(text: str) -> int | float:
    number = read_number(text)
    assert number is not None, "it was found to be a number"
    return number


def _literal(value: str | int | float | bool) -> str:
    return f"'{_plain(value)}'" if isinstance(value, str) else spell(value)


def _plain(text: str) -> str:
    """Inside quotes; a backslash takes from a quote or a backslash what it means."""
    if "{{" in text:
        raise NoCounterpart(f"the text [{text[:80]}] has {{{{ in it, which Argo takes for a template")
    return re.sub(r"""([\\'"])""", r"\\\1", text)
