"""Regular expressions whose cost no pattern can blow up: for the operators ``=~`` and ``!~`` of conditions.

The pattern and the text both come from users, and a backtracking matcher can be made to run for years by thirty
characters of each. This one walks all alternatives at once, one character at a time, so its work is at most states
times characters, and both are bounded: a pattern has at most 256 characters and 500 states, a text 4,096 characters.

The syntax is the common part of RE2 and Python: literals, ``.``, classes, groups, ``|``, ``* + ? {m,n}`` (lazy forms
too), ``^ $ \\b \\B \\A \\z``, ``\\d \\w \\s`` and their opposites, ``(?i)`` in front. Only whether there is a match
is answered. Look-around and back references are refused: they cannot be matched in bounded time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

LONGEST_PATTERN: Final = 256
MOST_STATES: Final = 500
LONGEST_TEXT: Final = 4096
_DEEPEST_GROUP: Final = 32

Test: TypeAlias = Callable[[str], bool]


class BadPattern(ValueError):
    """The pattern or the text cannot be worked on; the message says why."""


@dataclass(frozen=True, slots=True)
class _Take:
    """Go on with the next state if the character passes."""

    test: Test


@dataclass(frozen=True, slots=True)
class _Assert:
    """Go on with the next state if the position is of this kind."""

    kind: str


@dataclass(frozen=True, slots=True)
class _Fork:
    """Go on at all of these states, relative to this one."""

    targets: tuple[int, ...]


_Code: TypeAlias = "list[_Take | _Assert | _Fork]"


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text."""
    if len(text) > LONGEST_TEXT:
        raise BadPattern(f"a text to match may have at most {LONGEST_TEXT} characters, this one has {len(text)}")
    code = compile_pattern(pattern)
    states: set[int] = set()
    for position in range(len(text) + 1):
        if _enter(code, 0, text, position, states):
            return True
        if position == len(text):
            break
        character = text[position]
        survivors = [state for state in states if isinstance(take := code[state], _Take) and take.test(character)]
        states = set()
        for state in survivors:
            if _enter(code, state + 1, text, position + 1, states):
                return True
    return False


def _enter(code: _Code, start: int, text: str, position: int, states: set[int]) -> bool:
    """Add a state and all that can be reached from it without a character; True when that is the end."""
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state == len(code):
            return True
        if state in states:
            continue
        states.add(state)
        instruction = code[state]
        if isinstance(instruction, _Fork):
            waiting.extend(state + target for target in instruction.targets)
        elif isinstance(instruction, _Assert) and _holds(instruction.kind, text, position):
            waiting.append(state + 1)
    return False


def _holds(kind: str, text: str, position: int) -> bool:
    if kind == "start":
        return position == 0
    if kind == "end":
        return position == len(text)
    before = position > 0 and _is_word(text[position - 1])
    after = position < len(text) and _is_word(text[position])
    return (before != after) == (kind == "edge")


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _is_space(character: str) -> bool:
    return character in " \t\n\r\f"


def _is_no_newline(character: str) -> bool:
    return character != "\n"


_CLASSES: Final[dict[str, Test]] = {"d": _is_digit, "w": _is_word, "s": _is_space}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_ASSERTIONS: Final = {"b": "edge", "B": "inside", "A": "start", "z": "end"}


def _not(test: Test) -> Test:
    return lambda character: not test(character)


def _between(low: str, high: str) -> Test:
    return lambda character: low <= character <= high


def _any_of(tests: list[Test]) -> Test:
    return lambda character: any(test(character) for test in tests)


def _in_either_case(test: Test) -> Test:
    return lambda character: test(character) or test(character.lower()) or test(character.upper())


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> _Code:
    """Raises BadPattern for what is not a pattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"a pattern may have at most {LONGEST_PATTERN} characters, this one has {len(pattern)}")
    return _Compiler(pattern).whole()


class _Compiler:
    """One pattern, read once from left to right."""

    def __init__(self, pattern: str) -> None:
        self._any_case = pattern.startswith("(?i)")
        self._pattern = pattern.removeprefix("(?i)")
        self._at = 0
        self._depth = 0

    def whole(self) -> _Code:
        code = self._alternatives()
        if self._at < len(self._pattern):
            self._fail("a ) closes no group")
        return code

    def _fail(self, problem: str) -> NoReturn:
        raise BadPattern(f"the pattern [{self._pattern}] is invalid: {problem}")

    def _next(self, what: str) -> str:
        if self._at == len(self._pattern):
            self._fail(f"{what} is missing at its end")
        self._at += 1
        return self._pattern[self._at - 1]

    def _skip(self, text: str) -> bool:
        if self._pattern.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _bounded(self, code: _Code) -> _Code:
        if len(code) > MOST_STATES:
            self._fail(f"it needs more than {MOST_STATES} states; make its repetitions shorter")
        return code

    def _alternatives(self) -> _Code:
        code = self._sequence()
        while self._skip("|"):
            other = self._sequence()
            skip_other = _Fork((len(other) + 1,))
            code = self._bounded([_Fork((1, len(code) + 2)), *code, skip_other, *other])
        return code

    def _sequence(self) -> _Code:
        code: _Code = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            code = self._bounded([*code, *self._repeated()])
        return code

    def _repeated(self) -> _Code:
        atom = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return atom
        self._skip("?")  # lazy: which match is found makes no difference to whether there is one
        if self._bounds() is not None:
            self._fail("a repetition is repeated")
        least, most = bounds
        if most is not None and (most < least or most > MOST_STATES):
            self._fail(f"{{{least},{most}}} is no range up to {MOST_STATES}")
        if len(atom) * max(least, most or 0) > MOST_STATES:
            self._fail(f"it needs more than {MOST_STATES} states; make its repetitions shorter")
        maybe: _Code = [_Fork((1, len(atom) + 1)), *atom]
        if most is None:
            return [*atom * least, _Fork((1, len(atom) + 2)), *atom, _Fork((-len(atom) - 1,))]
        return [*atom * least, *maybe * (most - least)]

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(sign):
                return bounds
        end = self._pattern.find("}", self._at)
        if not self._pattern.startswith("{", self._at) or end < 0:
            return None
        least, comma, most = self._pattern[self._at + 1 : end].partition(",")
        if not (least.isascii() and least.isdigit()) or (most and not (most.isascii() and most.isdigit())):
            return None  # an ordinary brace
        self._at = end + 1
        return int(least), (int(most) if most else None if comma else int(least))

    def _atom(self) -> _Code:
        character = self._next("something")
        if character == "(":
            return self._group()
        if character == "[":
            return [self._take(self._class())]
        if character == ".":
            return [_Take(_is_no_newline)]
        if character in "^$":
            return [_Assert("start" if character == "^" else "end")]
        if character in "*+?":
            self._fail(f"there is nothing before {character} to repeat")
        if character == "\\":
            escaped = self._next("what \\ stands before")
            if escaped in _ASSERTIONS:
                return [_Assert(_ASSERTIONS[escaped])]
            return [self._take(self._escape(escaped))]
        return [self._take(_between(character, character))]

    def _take(self, test: Test) -> _Take:
        return _Take(_in_either_case(test) if self._any_case else test)

    def _group(self) -> _Code:
        if self._skip("?P<") or self._skip("?<"):
            name = self._pattern[self._at : max(self._pattern.find(">", self._at), self._at)]
            if not name.isidentifier():
                self._fail("look-around is not supported, and a group's name is a word")
            self._at += len(name) + 1
        elif not self._skip("?:") and self._skip("?"):
            self._fail("look-around and flags are not supported, except (?i) in front")
        self._depth += 1
        if self._depth > _DEEPEST_GROUP:
            self._fail(f"groups are nested more than {_DEEPEST_GROUP} deep")
        code = self._alternatives()
        if not self._skip(")"):
            self._fail("a group is not closed")
        self._depth -= 1
        return code

    def _escape(self, character: str) -> Test:
        if character.lower() in _CLASSES:
            test = _CLASSES[character.lower()]
            return test if character.islower() else _not(test)
        literal = _CONTROLS.get(character, character)
        if literal.isalnum():
            self._fail(f"\\{character} is not supported")
        return _between(literal, literal)

    def _class(self) -> Test:
        is_negated = self._skip("^")
        tests: list[Test] = []
        while not tests or not self._skip("]"):
            if self._pattern.startswith("[:", self._at):
                self._fail("classes like [:alpha:] are not supported")
            low = self._next("the ] of a class")
            if low == "\\":
                escaped = self._next("what \\ stands before")
                test = self._escape(escaped)
                low = _CONTROLS.get(escaped, escaped)
                if escaped.lower() in _CLASSES:
                    tests.append(test)
                    continue
            high = low
            if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
                self._at += 1
                high = self._next("the end of a range")
                if high == "\\":
                    escaped = self._next("what \\ stands before")
                    if escaped.lower() in _CLASSES:
                        self._fail(f"{low}-\\{escaped} is no range")
                    high = _CONTROLS.get(escaped, escaped)
                if high < low:
                    self._fail(f"{low}-{high} is no range")
            tests.append(_between(low, high))
        either = _any_of(tests)
        return _not(either) if is_negated else either
