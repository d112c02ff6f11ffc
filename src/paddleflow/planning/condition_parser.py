"""From the text of a condition to a small tree.

The grammar, loosest binding first; operators of one line bind alike and from left to right::

    choice      any ? choice : choice    any ?? choice
    any         a || b
    all         a && b
    comparison  == != < <= > >= =~ !~ in
    sum         + -
    product     * / %
    power       **
    sign        -a !a
    operand     12.5  0x1F  'text'  "text"  word  true  {{template}}  ( choice )  in ( choice , choice … )

A template is an operand of its own, whatever it will stand for: its value is never read as part of the expression.
Inside quotes, or written against a word (``v{{n}}``), it becomes part of that text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

from paddleflow.planning.patterns import BadPattern, compile_pattern
from paddleflow.planning.templates import TEMPLATE, Ref, ref_of

LONGEST_CONDITION: Final = 4096
_DEEPEST: Final = 20
_LONGEST_NUMBER: Final = 300

LEVELS: Final = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "!=", "<", "<=", ">", ">=", "=~", "!~", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
    frozenset({"**"}),
)

_COMPARISON: Final = 2
"""The level that ``in`` is on."""

_NUMBER: Final = r"(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
NUMBER: Final = re.compile(rf"[+-]?{_NUMBER}")
_TOKEN: Final = re.compile(
    rf"""(?P<blank>\s+)
    |(?P<number>{_NUMBER}(?![\w.{{]))
    |(?P<text>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    |(?P<word>(?:\w|\.|{TEMPLATE.pattern})++)
    |(?P<sign>\*\*|==|!=|<=|>=|=~|!~|&&|\|\||\?\?|[-+*/%<>!?:(),])""",
    re.VERBOSE | re.DOTALL,
)


class BadCondition(ValueError):
    """The text is no condition; the message says why."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Text:
    """A text with templates in it."""

    parts: tuple[str | Ref, ...]
    is_quoted: bool
    """What stands in quotes is a text, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class Signed:
    signs: tuple[str, ...]
    """Outermost first."""
    operand: Tree


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one level, from left to right."""

    first: Tree
    rest: tuple[tuple[str, Tree], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """``test ? yes : no``."""

    test: Tree
    yes: Tree
    no: Tree


@dataclass(frozen=True, slots=True)
class Otherwise:
    """``wanted ?? instead``: the second where the first is empty."""

    wanted: Tree
    instead: Tree


@dataclass(frozen=True, slots=True)
class Group:
    """``(a, b)``: what ``in`` looks into."""

    items: tuple[Tree, ...]


Tree: TypeAlias = "Constant | Text | Signed | Chain | Choice | Otherwise | Group"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


@lru_cache(maxsize=256)
def parse_condition(text: str) -> Tree:
    """Raises BadCondition. Remembered, because every item of a loop has the same condition."""
    if len(text) > LONGEST_CONDITION:
        raise BadCondition(f"it has {len(text)} characters, and may have {LONGEST_CONDITION}")
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            problem = "a quote is not closed" if text[at] in "'\"" else f"[{text[at]}] does not belong in a condition"
            raise BadCondition(f"{problem}, at character {at + 1}")
        kind = str(match.lastgroup)
        if kind == "word" and match[0] == "in":
            kind = "sign"
        if kind != "blank":
            tokens.append(_Token(kind, match[0], at))
        at = match.end()
    tokens.append(_Token("end", "", at))
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._choice()
        if self._now.kind != "end":
            self._fail("an operator is expected before it")
        return tree

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _fail(self, problem: str) -> NoReturn:
        token = self._now
        if token.kind == "end":
            raise BadCondition("it ends where a value is expected" if "value" in problem else f"at its end, {problem}")
        raise BadCondition(f"unexpected [{token.text}] at character {token.at + 1}, {problem}")

    def _skip(self, sign: str) -> bool:
        if self._now.kind == "sign" and self._now.text == sign:
            self._at += 1
            return True
        return False

    def _choice(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadCondition(f"it is nested more than {_DEEPEST} deep")
        tree = self._chain(0)
        if self._skip("??"):
            tree = Otherwise(tree, self._choice())
        elif self._skip("?"):
            yes = self._choice()
            if not self._skip(":"):
                self._fail("a : is expected")
            tree = Choice(tree, yes, self._choice())
        self._depth -= 1
        return tree

    def _chain(self, level: int) -> Tree:
        if level == len(LEVELS):
            return self._signed()
        first = self._chain(level + 1)
        rest: list[tuple[str, Tree]] = []
        while self._now.kind == "sign" and self._now.text in LEVELS[level]:
            sign = self._now.text
            self._at += 1
            rest.append((sign, self._list() if sign == "in" else self._chain(level + 1)))
            if sign in ("=~", "!~"):
                _check_pattern(rest[-1][1])
        return Chain(first, tuple(rest)) if rest else first

    def _signed(self) -> Tree:
        signs: list[str] = []
        while self._now.kind == "sign" and self._now.text in "-!":
            signs.append(self._now.text)
            self._at += 1
        operand = self._operand()
        return Signed(tuple(signs), operand) if signs else operand

    def _operand(self) -> Tree:
        token = self._now
        if self._skip("("):
            tree = self._choice()
            self._close()
            return tree
        if token.kind not in ("number", "text", "word"):
            self._fail("a value is expected there")
        self._at += 1
        if token.kind == "number":
            number = read_number(token.text)
            if number is None:
                raise BadCondition(f"the number at character {token.at + 1} is too large")
            return Constant(number)
        return _text(token.text[1:-1], is_quoted=True) if token.kind == "text" else _word(token.text)

    def _list(self) -> Tree:
        """What ``in`` looks into: a list even with a single item."""
        if not self._skip("("):
            return self._chain(_COMPARISON + 1)
        items = [self._choice()]
        while self._skip(","):
            items.append(self._choice())
        self._close()
        return Group(tuple(items))

    def _close(self) -> None:
        if not self._skip(")"):
            self._fail("a ) is expected")


def _word(text: str) -> Tree:
    if text in ("true", "false"):
        return Constant(text == "true")
    return _text(text, is_quoted=False)


def _text(text: str, *, is_quoted: bool) -> Tree:
    parts: list[str | Ref] = []
    end = 0
    for match in TEMPLATE.finditer(text):
        parts += [_unescaped(text[end : match.start()], is_quoted), ref_of(match)]
        end = match.end()
    if not parts:
        return Constant(_unescaped(text, is_quoted))
    parts.append(_unescaped(text[end:], is_quoted))
    return Text(tuple(part for part in parts if part != ""), is_quoted)


def _unescaped(text: str, is_quoted: bool) -> str:
    r"""A backslash in quotes protects a quote or a backslash; before anything else it is one (``'\d+'``)."""
    return re.sub(r"\\([\\'\"])", r"\1", text) if is_quoted else text


def _check_pattern(tree: Tree) -> None:
    if isinstance(tree, Constant) and isinstance(tree.value, str):
        try:
            compile_pattern(tree.value)
        except BadPattern as error:
            raise BadCondition(str(error)) from error


def read_number(text: str) -> int | float | None:
    """A text as a number; None for what is none, or too large to work with."""
    if len(text) > _LONGEST_NUMBER or not NUMBER.fullmatch(text):
        return None
    if "x" in text or "X" in text:
        return int(text, 16) if len(text) <= _LONGEST_NUMBER / 2 else None
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None
