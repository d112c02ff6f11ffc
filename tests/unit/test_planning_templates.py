"""Templates: which texts are templates, what filling gives, and that nothing is expanded twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.templates import LONGEST, MISSING, Missing, Ref, fill, references, spell, whole

FOUND = [
    ("", []),
    ("plain", []),
    ("{{a}}", [("", "a", "{{a}}")]),
    ("{{ a }}", [("", "a", "{{ a }}")]),
    ("{{\ta\n}}", [("", "a", "{{\ta\n}}")]),
    ("{{up.a}} and {{ x-y_1.b_2 }}", [("up", "a", "{{up.a}}"), ("x-y_1", "b_2", "{{ x-y_1.b_2 }}")]),
    ("{{PF_PARENT.PF_LOOP_ARGUMENT}}", [("PF_PARENT", "PF_LOOP_ARGUMENT", "{{PF_PARENT.PF_LOOP_ARGUMENT}}")]),
    ("{{a}}{{a}}", [("", "a", "{{a}}"), ("", "a", "{{a}}")]),
    ("{{{a}}}", [("", "a", "{{a}}")]),
    ("{a}", []),
    ("{{}}", []),
    ("{{ }}", []),
    ("{{a b}}", []),
    ("{{a-b}}", []),
    ("{{a.b.c}}", []),
    ("{{.a}}", []),
    ("{{a. b}}", []),
    ("{{a|upper}}", []),
    ("{{é}}", []),
    ("{{a}", []),
    ("{{" * 10_000, []),
]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_references(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert references(text) == tuple(Ref(*found) for found in expected)


def test_whole_is_one_template_and_nothing_else() -> None:
    assert whole("{{ a.b }}") == Ref("a", "b", "{{ a.b }}")
    assert [whole(text) for text in ("", "a", " {{a}}", "{{a}}\n", "{{a}}{{b}}", "x{{a}}")] == [None] * 6


VALUES: dict[str, Value] = {"n": 3, "f": 1e-05, "t": "text", "l": [1, [2.5, "x"]], "b": True, "none": None, "e": ""}


def look_up(ref: Ref) -> Value | Missing:
    return VALUES.get(ref.name, MISSING)


FILLED: list[tuple[str, Value]] = [
    ("plain", "plain"),
    ("{{n}}", 3),
    ("{{ l }}", [1, [2.5, "x"]]),
    ("{{b}}", True),
    ("{{none}}", None),
    ("{{unknown}}", "{{unknown}}"),
    (" {{n}}", " 3"),
    ("{{n}}{{n}}", "33"),
    ("lr={{f}}", "lr=0.00001"),
    ("{{l}}!", "[1 [2.5 x]]!"),
    ("{{b}} {{none}}|{{e}}", "true |"),
    ("{{t}}-{{ unknown }}-{{x y}}", "text-{{ unknown }}-{{x y}}"),
]


@pytest.mark.parametrize(("text", "expected"), FILLED)
def test_fill(text: str, expected: Value) -> None:
    filled = fill(text, look_up)
    assert filled == expected and type(filled) is type(expected)


pieces = st.lists(st.sampled_from(["{{a}}", "{{ b }}", "{{up.c}}", "{{", "}}", "{", "a", "b", " ", "text"]), max_size=8)


@given(template=pieces.map("".join), values=st.fixed_dictionaries({name: pieces.map("".join) for name in "abc"}))
def test_a_value_that_looks_like_a_template_is_never_expanded(template: str, values: dict[str, str]) -> None:
    """The outcome is the text cut at its templates and joined with the values, whatever those are."""
    rest, joined = template, ""
    for ref in references(template):
        before, _, rest = rest.partition(ref.text)
        joined += before + values.get(ref.name, ref.text)
    assert fill(template, lambda ref: values.get(ref.name, MISSING)) == joined + rest


@given(st.text())
def test_any_text_stays_as_it_is_when_nothing_is_known(text: str) -> None:
    assert fill(text, lambda _: MISSING) == text


SPELT: list[tuple[Value, str]] = [
    ("a", "a"),
    (3, "3"),
    (-3, "-3"),
    (10**30, "1" + "0" * 30),
    (True, "true"),
    (False, "false"),
    (None, ""),
    (1.0, "1"),
    (100.0, "100"),
    (0.1, "0.1"),
    (1e-05, "0.00001"),
    (1.5e-10, "0.00000000015"),
    (1e22, "1" + "0" * 22),
    (-2.5, "-2.5"),
    (float("inf"), "+Inf"),
    (float("-inf"), "-Inf"),
    (float("nan"), "NaN"),
    ([], "[]"),
    ([1, 2, 3], "[1 2 3]"),
    ([[], [[]], 1], "[[] [[]] 1]"),
    (["[", "", 1e-05, True], "[[  0.00001 true]"),
]


@pytest.mark.parametrize(("value", "text"), SPELT)
def test_spell(value: Value, text: str) -> None:
    assert spell(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_spelt_plainly_and_loses_nothing(number: float) -> None:
    text = spell(number)
    assert float(text) == number
    assert set(text) <= set("-.0123456789")


def test_a_list_may_be_as_deep_as_it_likes() -> None:
    deep: list[Value] = []
    for _ in range(100_000):
        deep = [deep]
    assert spell(deep) == "[" * 100_001 + "]" * 100_001


def test_a_text_that_would_become_too_long_is_refused_before_it_is_made() -> None:
    value = "x" * LONGEST
    assert fill("{{p}}{{q}}", lambda ref: value if ref.name == "p" else "") == value
    with pytest.raises(Invalid, match=f"would have more than {LONGEST} characters"):
        fill("{{p}}" * 1_000_000, lambda ref: value)


def test_a_text_that_is_one_template_is_its_value_however_long() -> None:
    value = "x" * (LONGEST + 1)
    assert fill("{{p}}", lambda ref: value) is value
