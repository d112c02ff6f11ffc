from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import NOTHING, Resources, format_units, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("2", 2),
        ("+2", 2),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("500m", Fraction(1, 2)),
        ("1k", 1000),
        ("20Gi", 20 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("100n", Fraction(1, 10**7)),
        ("-1", -1),
    ],
)
def test_quantities_mean_what_kubernetes_says(text: str, value: int | Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", "abc", "1.2.3", "1Zi", "1 Gi", "--1", "0x10", "1e999", "NaN", "∞", "1" * 100, "²", "1_000"]
)
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("name", "text"), [("cpu", "-1"), ("memory", "9" * 30), ("../etc", "1"), ("a b", "1"), ("", "1")]
)
def test_absurd_resources_are_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        Resources.parse({name: text})
    assert name in refused.value.message


@pytest.mark.parametrize(
    ("name", "units", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 2500, "2500m"),
        ("memory", 20 * 2**30, "20Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 4, "4"),
    ],
)
def test_amounts_are_spelt_shortest(name: str, units: int, text: str) -> None:
    assert format_units(name, units) == text


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "x/y"]), st.integers(min_value=0, max_value=2**50)
)


@given(amounts)
def test_spelling_and_parsing_are_inverse(units: dict[str, int]) -> None:
    assert Resources.parse(Resources(units).spell()) == Resources(units)


@given(amounts, amounts)
def test_adding_then_subtracting_changes_nothing(a: dict[str, int], b: dict[str, int]) -> None:
    assert Resources(a) + Resources(b) - Resources(b) == Resources(a)
    assert hash(Resources(a) + Resources(b)) == hash(Resources(b) + Resources(a))


@given(amounts, amounts)
def test_what_fits_leaves_nothing_below_zero(asked: dict[str, int], room: dict[str, int]) -> None:
    rest = Resources(room) - Resources(asked)
    assert Resources(asked).fits(Resources(room)) == all(units >= 0 for _, units in rest)


def test_a_quota_limits_only_what_it_names() -> None:
    asked = Resources.of(cpu="4", memory="1Gi", **{"nvidia.com/gpu": "2"})
    assert asked.over_named_limit(Resources.of(cpu="8", memory="8Gi")) is None
    assert asked.over_named_limit(Resources.of(cpu="2", memory="8Gi")) == "cpu"
    assert NOTHING.over_named_limit(Resources.of(cpu="0")) is None
