"""Documents: what is read, on which line, what is refused, and that what is written reads back."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import pairwise

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from paddleflow.documents import dump, load, reading
from paddleflow.domain.errors import Invalid

SCALARS = [
    ("true", True),
    ("True", True),
    ("FALSE", False),
    ("yes", "yes"),
    ("no", "no"),
    ("on", "on"),
    ("Off", "Off"),
    ("y", "y"),
    ("", None),
    ("~", None),
    ("null", None),
    ("NULL", None),
    ("12", 12),
    ("-7", -7),
    ("+7", 7),
    ("017", 17),
    ("0x1F", 31),
    ("0o17", 15),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("1.5", 1.5),
    (".5", 0.5),
    ("2.", 2.0),
    ("1e3", 1000.0),
    ("-1E-2", -0.01),
    (".inf", math.inf),
    ("-.Inf", -math.inf),
    ("1e999", "1e999"),
    ("9" * 20, int("9" * 20)),
    ("9" * 301, "9" * 301),
    ("2022-01-02", "2022-01-02"),
    ("2022-01-02T03:04:05Z", "2022-01-02T03:04:05Z"),
    ("12:30:45", "12:30:45"),
    ("1.2.3", "1.2.3"),
    ("=", "="),
    ("'12'", "12"),
    ('"true"', "true"),
    ("''", ""),
    ("!!str 12", "12"),
    ("! 12", "12"),
    ("!!int '12'", 12),
    ("!!float 12", 12.0),
    ("!!bool 'true'", True),
    ("!!null ''", None),
    ("|\n  a\n  b\n", "a\nb\n"),
    (">-\n  a\n  b\n", "a b"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars(text: str, value: object) -> None:
    read = load(f"key: {text}").value
    assert read == {"key": value}
    assert type(read["key"]) is type(value)


def test_not_a_number_is_one() -> None:
    read = load("[.nan, .NaN]").value
    assert isinstance(read, list) and all(math.isnan(item) for item in read)


def test_every_key_and_item_has_its_line() -> None:
    document = load("a: 1\nb:\n  - x\n  -\n    c: {d: 1,\n      e: 2}\n  - |\n    text\nf: 2\n")
    assert document.value == {"a": 1, "b": ["x", {"c": {"d": 1, "e": 2}}, "text\n"], "f": 2}
    assert document.lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 5,
        ("b", 1, "c"): 5,
        ("b", 1, "c", "d"): 5,
        ("b", 1, "c", "e"): 6,
        ("b", 2): 7,
        ("f",): 9,
    }


def test_keys_are_texts_as_they_are_written() -> None:
    assert load("1: a\ntrue: b\n~: c\n1.50: d\n'x y': e\n&k name: f\n").value == {
        "1": "a",
        "true": "b",
        "~": "c",
        "1.50": "d",
        "x y": "e",
        "name": "f",
    }


def test_an_alias_repeats_a_value_and_can_be_a_key() -> None:
    assert load("a: &x [1, {b: 2}]\nc: *x\nd: &k word\n*k : e\n").value == {
        "a": [1, {"b": 2}],
        "c": [1, {"b": 2}],
        "d": "word",
        "word": "e",
    }


def test_an_anchor_may_be_given_again() -> None:
    assert load("a: &x 1\nb: *x\nc: &x 2\nd: *x").value == {"a": 1, "b": 1, "c": 2, "d": 2}


MERGES = [
    ("a: &a {p: 1, q: 2}\nb: {<<: *a, q: 3}", {"p": 1, "q": 3}),
    ("a: &a {p: 1, q: 2}\nb: {q: 3, <<: *a}", {"p": 1, "q": 3}),
    ("a: &a {p: 1}\nc: &c {p: 2, r: 4}\nb: {<<: [*a, *c]}", {"p": 1, "r": 4}),
    ("b: {<<: {p: 1}, q: 2}", {"p": 1, "q": 2}),
    ("b: {'<<': 1}", {"<<": 1}),
]


@pytest.mark.parametrize(("text", "merged"), MERGES)
def test_merge_keys(text: str, merged: object) -> None:
    document = load(text)
    assert document.value["b"] == merged  # type: ignore[index]


def test_merging_leaves_the_merged_map_alone() -> None:
    document = load("a: &a {p: 1}\nb:\n  <<: *a\n  q: 2\n")
    assert document.value == {"a": {"p": 1}, "b": {"p": 1, "q": 2}}
    assert document.lines["b", "p"] == 3


def test_nothing_written_is_nothing() -> None:
    assert (load("").value, load("# a remark\n").value, load("---\n...\n").value) == (None, None, None)


REFUSED = [
    ("a: 1\nb: 2\na: 3", "the key [a] is there twice, on line 1 and on line 3 (line 3)"),
    ("a: {b: 1,\n b: 2}", "the key [b] is there twice, on line 1 and on line 2"),
    ("a: [1\n", "the document is not YAML"),
    ("a:\n\tb: 1", "(line 2)"),
    ("a: b: c", "(line 1)"),
    ("a: 1\n---\nb: 2", "there is a second document; only one is read (line 2)"),
    ("? [a]\n: 1", "a key is a map or a list"),
    ("? {a: 1}\n: 1", "a key is a map or a list"),
    ("a: &x [1]\n*x : 1", "the key [*x] is not a text (line 2)"),
    ("a: &x [*x]", "the anchor [x] contains itself"),
    ("a: *x", "the anchor [x] is not defined"),
    ("a: !!python/object/apply:os.system [ls]", "is not supported (line 1)"),
    ("a: !secret x", "the tag [!secret] is not supported"),
    ("a: !!int x", "[x] is not of the type [int]"),
    ("a: !!set {x}", "is not supported"),
    ("a: {<<: 1}", "[<<] needs a map or a list of maps"),
    ("a: \x07", "is not YAML"),
    ("a: \ud800", "not text"),
    ('a: "x\\0y"', "a text has a NUL character in it (line 1)"),
    ('b: 1\n"x\\0y": 1', "a text has a NUL character in it (line 2)"),
    ("[" * 100_000, "nested more than 64 deep"),
    ("{a: " * 100_000, "nested more than 64 deep"),
    ("- " * 100_000, "nested more than 64 deep"),
    ("x" * (4 * 2**20 + 1), "bytes, and may have 4194304"),
    ("é" * (2 * 2**20 + 1), "bytes, and may have 4194304"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED)
def test_refused(text: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        load(text)
    assert told in caught.value.message
    assert caught.value.code == "InvalidPipeline"
    assert len(caught.value.message) < 300


def test_the_line_is_among_the_details() -> None:
    with pytest.raises(Invalid) as caught:
        load("a: 1\n\n\na: 2")
    assert caught.value.details == {"line": 4}


def test_a_small_text_cannot_become_a_large_value() -> None:
    names = "abcdefghi"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]" for last, name in pairwise(names)]
    with pytest.raises(Invalid, match="more than 500000 values, aliases followed"):
        load("\n".join(lines))


def test_merging_counts_like_any_alias() -> None:
    lines = ["a: &a {" + ", ".join(f"k{index}: 1" for index in range(100)) + "}"]
    lines += [f"b{index}: {{<<: *a}}" for index in range(50)]
    with pytest.raises(Invalid, match="more than 4000 values"):
        load("\n".join(lines), max_nodes=4000)
    assert load("\n".join(lines), max_nodes=6000).value


def test_aliases_cannot_nest_deeper_than_what_is_written() -> None:
    lines = ["a0: &a0 [x]", *(f"a{index}: &a{index} [*a{index - 1}]" for index in range(1, 70))]
    with pytest.raises(Invalid, match="nested more than 64 deep"):
        load("\n".join(lines))


def test_the_limits_are_exact() -> None:
    assert load("[" * 64 + "]" * 64).value
    assert load("[1, 2, 3]", max_nodes=4).value == [1, 2, 3]
    with pytest.raises(Invalid):
        load("[1, 2, 3]", max_nodes=3)


def test_the_slower_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x {b: [1, yes, 'q']}\nc:\n  <<: *x\n  d: |\n    text\n"
    fast = load(text)
    monkeypatch.setattr(reading, "_LOADER", yaml.SafeLoader)
    assert load(text) == fast
    with pytest.raises(Invalid, match="nested more than 64"):
        load("[" * 10_000)


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"%@`#?,\n\t <~1.\\"), max_size=40) | st.text(max_size=40))
def test_garbage_is_read_or_refused(text: str) -> None:
    with suppress(Invalid):
        load(text)


texts = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from("\n :-#'\"|>&*!%@`{}[],?<~\t0123456789.eox+"),
    max_size=30,
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(values)
@example("...\n")
@example("word")
@example({"<<": {"?": "..."}})
def test_what_is_written_reads_back(value: object) -> None:
    read = load(dump(value)).value
    assert read == value
    assert repr(read) == repr(value)  # order and types too: 1, 1.0 and True are equal


def test_it_is_written_for_people() -> None:
    document = {
        "name": "p",
        "entry_points": {"b": {"command": "one\ntwo\n", "deps": ""}, "a": {"list": [1, "1", "yes", 0.5], "none": None}},
    }
    assert dump(document) == (
        "name: p\n"
        "entry_points:\n"
        "  b:\n"
        "    command: |\n"
        "      one\n"
        "      two\n"
        "    deps: ''\n"
        "  a:\n"
        "    list:\n"
        "    - 1\n"
        "    - '1'\n"
        "    - 'yes'\n"
        "    - 0.5\n"
        "    none: null\n"
    )


def test_a_long_text_stays_on_its_line_and_a_shared_value_is_written_twice() -> None:
    shared = ["word " * 100]
    written = dump({"a": shared, "b": shared})
    assert written.count("\n") == 4 and "&" not in written


def test_what_cannot_be_written_is_named() -> None:
    with pytest.raises(Invalid, match=r"a\.0 is a set"):
        dump({"a": [{1}]})
    with pytest.raises(Invalid, match=r"the key \[1\] cannot be written"):
        dump({1: "a"})
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(Invalid, match="nested 64 deep"):
        dump(endless)
