"""Conditions: the language, what templates stand for in it, and that nothing in them does harm."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.conditions import check_condition, evaluate
from paddleflow.planning.templates import Ref

VALUES: dict[str, Value] = {
    "n": 3,
    "f": 0.5,
    "text": "foo",
    "number_text": "0.95\n",
    "negative": "-2",
    "truth": "true\n",
    "really": True,
    "list": [1, "a", 2.5],
    "empty": "",
    "none": None,
    "words": "two words",
    "quote": "it's",
    "code": "1 == 1 || x",
    "template": "{{n}}",
    "long": "9" * 400,
}


def look_up(ref: Ref) -> Value:
    return VALUES[ref.name]


TRUE = [
    "1 == 1",
    "1 == 1.0",
    "1 != 2",
    "1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3",
    "0x1F == 31",
    "1e3 == 1000",
    ".5 == 0.5",
    "true",
    "!false",
    "!!true",
    "true || 1 / 0 == 1",
    "!(false && 1 / 0 == 1)",
    "false || true && true",
    "true || false && false",
    "1 + 2 * 3 == 7",
    "(1 + 2) * 3 == 9",
    "7 - 2 - 1 == 4",
    "8 / 4 / 2 == 1",
    "7 % 4 == 3",
    "-7 % 4 == -3",
    "1 / 2 == 0.5",
    "2 ** 10 == 1024",
    "2 ** 3 ** 2 == 64",
    "-2 ** 2 == 4",
    "2 ** -1 == 0.5",
    "9 ** 9 ** 9 > 10 ** 77",
    "- -1 == 1",
    "9007199254740993 != 9007199254740992",
    "foo == foo",
    "foo == 'foo'",
    'foo == "foo"',
    "foo != bar",
    "1.2.3 == '1.2.3'",
    "数据 == '数据'",
    "a < b && 'a' <= \"a\"",
    "'a' + 'b' == 'ab'",
    "'a' + 1 == 'a1'",
    "'it\\'s' == \"it's\"",
    "'a\\\\b' == 'a\\\\b'",
    "1 != '1'",
    "1 != true",
    "'true' != true",
    "2 in (1, 2)",
    "2 in (2)",
    "b in (a, b)",
    "!(c in (a, b))",
    "1 + 1 in (2, 3)",
    "1 in {{list}} && a in {{list}} && 2.5 in {{list}}",
    "'abc' =~ 'b'",
    "abc =~ '^a.c$'",
    "abc !~ '^b'",
    "a1 =~ '^\\w\\d$'",
    "a1 =~ '^\\\\w\\\\d$'",
    "{{n}} =~ '^[0-9]+$'",
    "1 < 2 ? true : false",
    "1 > 2 ? 5 : true",
    "false ? false : false ? false : true",
    "'' ?? true",
    "({{none}} ?? x) == x",
    "({{text}} ?? x) == foo",
    "{{n}} == 3",
    "{{ n }}==3",
    "{{n}} + {{f}} == 3.5",
    "{{number_text}} > 0.9",
    "{{negative}} < 0 && -{{negative}} == 2",
    "{{truth}}",
    "{{truth}} && {{really}}",
    "{{text}} == foo",
    "{{up.text}} == 'foo'",
    "{{words}} == 'two words'",
    "{{empty}} == ''",
    "{{none}} == ''",
    "'{{text}}-{{n}}' == 'foo-3'",
    "'{{n}}' == '3'",
    "v{{n}} == v3",
    "{{n}}0 == 30",
    "{{text}}{{n}} == foo3",
    "'{{quote}}' == \"it's\"",
    "'{{list}}' == '[1 a 2.5]'",
    "{{template}} == '{' + '{n}}'",
    "'{{template}}' != '3'",
    "{{long}} == {{long}}",
    "!" * 4000 + "true",
    " && ".join(["true"] * 400),
    "1" + " + 1" * 500 + " == 501",
]


@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    check_condition(text)
    assert evaluate(text, look_up) is True


@pytest.mark.parametrize("text", ["1 == 2", "foo == bar", "{{n}} > 3", "{{n}} == '3'", "3 in (1, 2)", "true && false"])
def test_false(text: str) -> None:
    assert evaluate(text, look_up) is False


@pytest.mark.parametrize("text", ["{{code}} == 1", "{{code}} == x", "'{{code}}' == ''", "false || {{code}} == true"])
def test_what_a_template_stands_for_is_no_part_of_the_expression(text: str) -> None:
    assert evaluate(text, look_up) is False


BROKEN = [
    ("", "it ends where a value is expected"),
    ("   ", "it ends where a value is expected"),
    ("1 ==", "it ends where a value is expected"),
    ("== 1", "unexpected [==] at character 1, a value is expected there"),
    ("1 1", "unexpected [1] at character 3, an operator is expected before it"),
    ("(1 == 1", "a ) is expected"),
    ("1 == 1)", "unexpected [)] at character 7"),
    ("1 in ()", "unexpected [)]"),
    ("1 in (1", "a ) is expected"),
    ("(1, 2) == 1", "unexpected [,]"),
    ("true ? 1", "a : is expected"),
    ("'open", "a quote is not closed, at character 1"),
    ("'\\'", "a quote is not closed"),
    ("a = b", "[=] does not belong in a condition, at character 3"),
    ("a & b", "[&] does not belong"),
    ("{{a", "[{] does not belong"),
    ("{{a b}} == 1", "[{] does not belong"),
    ("a; b", "[;] does not belong"),
    ("__import__('os').system('ls')", "unexpected [(] at character 11"),
    ("x.__class__ == 1 and 2", "unexpected [and]"),
    ("lambda: 1", "unexpected [:]"),
    ("[x for x in y]", "[[] does not belong"),
    ("a =~ '('", "a group is not closed"),
    ("a =~ '(?=b)'", "look-around"),
    ("a =~ '(a{500}){500}'", "more than 500 states"),
    ("1e999 > 1", "the number at character 1 is too large"),
    ("9" * 301 + " > 1", "the number at character 1 is too large"),
    ("(" * 21 + "true" + ")" * 21, "nested more than 20 deep"),
    ("true ? " * 30, "nested more than 20 deep"),
    ("(" * 4000, "nested more than 20 deep"),
    ("1 == 1" + " " * 5000, "it has 5006 characters, and may have 4096"),
]


@pytest.mark.parametrize(("text", "told"), BROKEN)
def test_broken(text: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_condition(text)
    shown = text if len(text) <= 200 else text[:200] + "…"
    assert caught.value.message.startswith(f"condition[{shown}] is invalid, error: ")
    assert told in caught.value.message and caught.value.code == "InvalidPipeline"
    with pytest.raises(Invalid):
        evaluate(text, look_up)


SENSELESS = [
    ("1 + 2", "its result [3] is not true or false"),
    ("foo", "its result [foo] is not true or false"),
    ("{{code}}", "its result [1 == 1 || x] is not true or false"),
    ("{{list}}", "its result [[1 a 2.5]] is not true or false"),
    ("1 && true", "[1] beside && is not true or false"),
    ("false || foo", "[foo] beside || is not true or false"),
    ("!1", "[1] beside ! is not true or false"),
    ("1 ? true : false", "[1] beside ? is not true or false"),
    ("foo-bar == 1", "[foo] beside - is not a number; put texts in quotes"),
    ("-true == 1", "[true] beside - is not a number"),
    ("true + 1 == 2", "[true] beside + is not a number"),
    ("{{list}} + 1 == 2", "beside + is not a number"),
    ("1 < a", "[1] < [a] compares neither two numbers nor two texts"),
    ("true < false", "compares neither two numbers nor two texts"),
    ("1 / 0 == 1", "division by zero"),
    ("1 % 0 == 1", "cannot be worked out"),
    ("(-8) ** 0.5 == 1", "cannot be worked out"),
    ("9 ** 9 ** 9 ** 9 == 1", "cannot be worked out"),
    ("1e308 * 10 == 1", "a number becomes too large"),
    ("10 ** 300 * 10 ** 300 == 1", "a number becomes too large"),
    ("1 in 2", "[in] needs a list like (a, b), not [2]"),
    ("a =~ 1", "the pattern of =~ must be a text in quotes"),
    ("a =~ '{{open}}'", "the pattern [(] is invalid"),
    ("{{huge}} =~ 'a'", "a text to match may have at most 4096 characters"),
]


@pytest.mark.parametrize(("text", "told"), SENSELESS)
def test_senseless_with_these_values(text: str, told: str) -> None:
    values = {**VALUES, "open": "(", "huge": "a" * 5000}
    with pytest.raises(Invalid) as caught:
        evaluate(text, lambda ref: values[ref.name])
    assert told in caught.value.message


def test_only_the_templates_that_are_reached_are_looked_up() -> None:
    asked: list[str] = []

    def answer(ref: Ref) -> Value:
        asked.append(ref.text)
        return False

    assert evaluate("{{a}} && {{b}}", answer) is False
    assert asked == ["{{a}}"]


signs = ["==", "!=", "<", "&&", "||", "!", "=~", "in", "?", ":", "??", "(", ")", ",", "+", "-", "*", "/", "%", "**"]
operands = ["1", "0.5", "a", "true", "'x'", '"y"', "{{n}}", "{{text}}", "{{list}}", "'", "{{", "\\", "é", "9999"]


@given(st.lists(st.sampled_from(signs + operands), max_size=12).map(" ".join) | st.text(max_size=30))
def test_garbage_is_worked_out_or_refused(text: str) -> None:
    with suppress(Invalid):
        evaluate(text, look_up)


@given(st.text(max_size=30))
def test_any_text_a_template_stands_for_is_worked_out_or_refused(value: str) -> None:
    for text in ("{{a}} == {{a}}", "'{{a}}' == \"{{a}}\"", "x{{a}} == x{{a}}"):
        assert evaluate(text, lambda _: value) is True
    with suppress(Invalid):
        evaluate("{{a}} + 1 > 0 || 'b' =~ '{{a}}'", lambda _: value)


numbers = st.integers(0, 50).map(str) | st.floats(0, 50).map(lambda number: f"{number:.3f}")
expressions = st.recursive(
    numbers,
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join)
        | inner.map(lambda text: f"({text})")
        | inner.map(lambda text: f"-({text})")
    ),
    max_leaves=8,
)


def python_says(text: str) -> float | None:
    try:
        return float(eval(text, {"__builtins__": {}}))
    except ZeroDivisionError:
        return None


@given(expressions)
def test_arithmetic_is_the_usual_one(text: str) -> None:
    expected = python_says(text)
    if expected is None:
        with pytest.raises(Invalid, match="division by zero"):
            evaluate(f"{text} == 0", look_up)
    else:
        assert evaluate(f"{text} == {{{{expected}}}}", lambda _: expected)


@given(st.integers(-100, 100), st.integers(-100, 100).filter(bool))
def test_the_remainder_has_the_sign_of_the_left_number(left: int, right: int) -> None:
    values = {"left": left, "right": right, "expected": math.fmod(left, right)}
    assert evaluate("{{left}} % {{right}} == {{expected}}", lambda ref: values[ref.name])
