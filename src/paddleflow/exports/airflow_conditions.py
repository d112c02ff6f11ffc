"""Conditions as Python expressions over ``known``, the values of a step: made from the tree, all texts as literals."""

from __future__ import annotations

from typing import assert_never

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
)


def python_condition(condition: str) -> str:
    return f"truth({_told(parse_condition(condition))})"


def _told(tree: Tree) -> str:
    match tree:
        case Constant():
            return repr(tree.value)
        case Text():
            return _text(tree)
        case Signed():
            told = _told(tree.operand)
            for sign in reversed(tree.signs):
                told = f"(not truth({told}))" if sign == "!" else f"negative({told})"
            return told
        case Chain():
            told = _told(tree.first)
            for sign, operand in tree.rest:
                told = _pair(told, sign, operand)
            return told
        case Choice():
            return f"({_told(tree.yes)} if truth({_told(tree.test)}) else {_told(tree.no)})"
        case Otherwise():
            return f"otherwise({_told(tree.wanted)}, lambda: {_told(tree.instead)})"
        case Group():
            return f"[{', '.join(_told(item) for item in tree.items)}]"
        case _:
            assert_never(tree)


def _pair(left: str, sign: str, operand: Tree) -> str:
    right = _told(operand)
    match sign:
        case "&&":
            return f"(truth({left}) and truth({right}))"
        case "||":
            return f"(truth({left}) or truth({right}))"
        case "==":
            return f"same({left}, {right})"
        case "!=":
            return f"(not same({left}, {right}))"
        case "=~":
            return f"matches({left}, {right})"
        case "!~":
            return f"(not matches({left}, {right}))"
        case "in":
            return f"among({left}, {right})"
        case "<" | "<=" | ">" | ">=":
            return f'ordered({left}, "{sign}", {right})'
        case _:
            return f'calculated({left}, "{sign}", {right})'


def _text(tree: Text) -> str:
    if not tree.is_quoted and len(tree.parts) == 1 and not isinstance(tree.parts[0], str):
        return f"read(known[{tree.parts[0].name!r}])"
    joined = " + ".join(repr(part) if isinstance(part, str) else f"spell(known[{part.name!r}])" for part in tree.parts)
    return f"({joined})" if tree.is_quoted else f"read({joined})"
