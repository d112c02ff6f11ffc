"""Conditions: whether a node runs. A small language of comparisons, worked out here and never given to an ``eval``.

A template stands for a value, not for text of the expression: the content of an artifact cannot become an operator. A
text it stands for counts as a number or a truth value when it looks like one, as if it had been written there. Bare
words are texts. The answer must be true or false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.condition_parser import (
    BadCondition,
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
from paddleflow.planning.patterns import BadPattern, search
from paddleflow.planning.templates import Ref, spell

Binding: TypeAlias = Callable[[Ref], Value]

_SHOWN: Final = 200
"""Of a long condition, so many characters are repeated in a complaint."""
_INTEGER_BITS: Final = 1000
"""Whole numbers are exact up to this size."""

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def check_condition(text: str) -> None:
    """Raises Invalid if the text is no condition, whatever its templates stand for."""
    try:
        parse_condition(text)
    except BadCondition as error:
        raise _invalid(text, str(error)) from error


def evaluate(text: str, lookup: Binding) -> bool:
    """Raises Invalid if the text is no condition, or if it makes no sense with these values."""
    try:
        answer = _value(parse_condition(text), lookup)
    except (BadCondition, BadPattern) as error:
        raise _invalid(text, str(error)) from error
    except (ArithmeticError, ValueError) as error:
        raise _invalid(text, f"the numbers in it cannot be worked out: {error}") from error
    if not isinstance(answer, bool):
        raise _invalid(text, f"its result [{_shown(spell(answer))}] is not true or false")
    return answer


def _invalid(text: str, problem: str) -> Invalid:
    return Invalid(f"condition[{_shown(text)}] is invalid, error: {problem}", code="InvalidPipeline")


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _value(tree: Tree, lookup: Binding) -> Value:
    match tree:
        case Constant():
            return tree.value
        case Text():
            return _text_value(tree, lookup)
        case Signed():
            return _signed(tree, lookup)
        case Chain():
            value = _value(tree.first, lookup)
            for sign, operand in tree.rest:
                value = _combined(value, sign, operand, lookup)
            return value
        case Choice():
            return _value(tree.yes if _truth(_value(tree.test, lookup), "?") else tree.no, lookup)
        case Otherwise():
            wanted = _value(tree.wanted, lookup)
            return _value(tree.instead, lookup) if wanted == "" else wanted
        case Group():
            return [_value(item, lookup) for item in tree.items]
        case _:
            assert_never(tree)


def _text_value(tree: Text, lookup: Binding) -> Value:
    if tree.is_quoted:
        return "".join(part if isinstance(part, str) else spell(lookup(part)) for part in tree.parts)
    if len(tree.parts) == 1 and isinstance(tree.parts[0], Ref):
        value = lookup(tree.parts[0])
        return _read(value) if isinstance(value, str) else "" if value is None else value
    return _read("".join(part if isinstance(part, str) else spell(lookup(part)) for part in tree.parts))


def _read(text: str) -> Value:
    """What the text would be, had it been written in the condition by itself."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    number = read_number(text)
    return text if number is None else number


def _signed(tree: Signed, lookup: Binding) -> Value:
    value = _value(tree.operand, lookup)
    for sign in reversed(tree.signs):
        value = not _truth(value, "!") if sign == "!" else -_number(value, "-")
    return value


def _combined(left: Value, sign: str, operand: Tree, lookup: Binding) -> Value:
    if sign in ("&&", "||"):
        decided = _truth(left, sign)
        return decided if decided == (sign == "||") else _truth(_value(operand, lookup), sign)
    right = _value(operand, lookup)
    if sign in ("==", "!="):
        return _equal(left, right) == (sign == "==")
    if sign in _ORDER:
        return _ordered(left, sign, right)
    if sign in ("=~", "!~"):
        if not isinstance(right, str):
            raise BadCondition(f"the pattern of {sign} must be a text in quotes, not [{_shown(spell(right))}]")
        return search(right, spell(left)) == (sign == "=~")
    if sign == "in":
        if not isinstance(right, list):
            raise BadCondition(f"[in] needs a list like (a, b), not [{_shown(spell(right))}]")
        return any(_equal(left, item) for item in right)
    if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
        return spell(left) + spell(right)
    return _calculated(_number(left, sign), sign, _number(right, sign))


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: Value, right: Value) -> bool:
    """Only like and like are equal: 1 is neither true nor '1'."""
    alike = type(left) is type(right) or (_is_number(left) and _is_number(right))
    return alike and left == right


def _ordered(left: Value, sign: str, right: Value) -> bool:
    if not (_is_number(left) and _is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        shown = f"[{_shown(spell(left))}] {sign} [{_shown(spell(right))}]"
        raise BadCondition(f"{shown} compares neither two numbers nor two texts")
    return _ORDER[sign](left, right)


def _truth(value: Value, sign: str) -> bool:
    if not isinstance(value, bool):
        raise BadCondition(f"[{_shown(spell(value))}] beside {sign} is not true or false")
    return value


def _number(value: Value, sign: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "; put texts in quotes" if isinstance(value, str) else ""
        raise BadCondition(f"[{_shown(spell(value))}] beside {sign} is not a number{hint}")
    return value


def _calculated(left: int | float, sign: str, right: int | float) -> int | float:
    result: int | float
    if sign == "+":
        result = left + right
    elif sign == "-":
        result = left - right
    elif sign == "*":
        result = left * right
    elif sign == "/":
        result = left / right
    elif sign == "%":
        result = math.fmod(left, right)  # the sign of the left one, as in C
    else:
        result = _power(left, right)
    if not (math.isfinite(result) if isinstance(result, float) else result.bit_length() <= _INTEGER_BITS):
        raise BadCondition("a number becomes too large")
    return result


def _power(base: int | float, exponent: int | float) -> int | float:
    if (
        isinstance(base, int)
        and isinstance(exponent, int)
        and exponent >= 0
        and base.bit_length() * exponent <= _INTEGER_BITS
    ):
        return int(base**exponent)
    return math.pow(base, exponent)
