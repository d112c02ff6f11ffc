"""The regular expressions of conditions: they agree with the usual ones, and no pattern makes them slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paddleflow.planning.patterns import LONGEST_TEXT, BadPattern, search

MATCHES = [
    ("", ""),
    ("", "abc"),
    ("b", "abc"),
    ("^abc$", "abc"),
    ("a.c", "abc"),
    ("a|b", "b"),
    ("^(?:ab|cd)+$", "abcdab"),
    ("^(?P<name>a)b$", "ab"),
    ("^(?<name>a)b$", "ab"),
    ("^a{2,3}$", "aaa"),
    ("^a{2}$", "aa"),
    ("^a{2,}$", "aaaaa"),
    ("a{", "a{"),
    ("a{x}", "a{x}"),
    ("^a*?b+?c??$", "aabb"),
    ("[]a]", "]"),
    ("[^]a]", "b"),
    ("[a-c-]", "-"),
    (r"[\w.]+@[\d\]]", "a.b@]"),
    (r"[\n-\r]", "\n"),
    (r"\d\D\w\W\s\S", "1a_- x"),
    (r"\bword\b", "a word!"),
    (r"\Bord", "word"),
    (r"\Aa\z", "a"),
    (r"\.\*\\\/", r".*\/"),
    (r"\t", "\t"),
    ("(?i)ABC[d-f]", "abcE"),
    ("数据", "有数据"),
]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_matches(pattern: str, text: str) -> None:
    assert search(pattern, text)


MISMATCHES = [("a", ""), ("^b", "ab"), ("a$", "a\n"), ("a.b", "a\nb"), (r"\d", "٣"), (r"\w", "é"), ("[^a]", "a")]


@pytest.mark.parametrize(("pattern", "text"), MISMATCHES)
def test_mismatches(pattern: str, text: str) -> None:
    assert not search(pattern, text)


REFUSED = [
    ("(", "a group is not closed"),
    (")", "a ) closes no group"),
    ("[", "the ] of a class is missing"),
    ("[a", "the ] of a class is missing"),
    ("[b-a]", "b-a is no range"),
    (r"[a-\d]", "is no range"),
    ("[[:alpha:]]", "are not supported"),
    ("*", "nothing before *"),
    ("a|+", "nothing before +"),
    ("a**", "a repetition is repeated"),
    ("a{2}{3}", "a repetition is repeated"),
    ("a{3,2}", "is no range"),
    ("a{501}", "500"),
    ("(a{100}){100}", "more than 500 states"),
    ("(((((a{9}){9}){9}){9}){9})", "more than 500 states"),
    ("()" + "{999999999}", "is no range"),
    ("\\", "is missing at its end"),
    (r"(a)\1", r"\1 is not supported"),
    (r"\p{L}", r"\p is not supported"),
    ("(?=a)", "look-around"),
    ("(?<=a)", "look-around"),
    ("(?s)a", "flags"),
    ("a" * 257, "at most 256 characters"),
    ("(" * 40 + ")" * 40, "nested more than 32 deep"),
]


@pytest.mark.parametrize(("pattern", "told"), REFUSED)
def test_refused(pattern: str, told: str) -> None:
    with pytest.raises(BadPattern) as caught:
        search(pattern, "a")
    assert told in str(caught.value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "^a*a*a*a*a*a*$", "(.*)*b", "(?:a?){40}a{40}c"])
def test_patterns_that_take_backtracking_years_are_answered(pattern: str) -> None:
    assert not search(pattern, "a" * 1000 + "!")


def test_a_long_text_is_refused() -> None:
    assert search("a$", "a" * LONGEST_TEXT)
    with pytest.raises(BadPattern, match="at most 4096 characters, this one has 4097"):
        search("a", "a" * (LONGEST_TEXT + 1))


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", "^", "$", r"\b", "-", r"\.", ""])
patterns = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        )
    ),
    max_leaves=8,
)


@given(patterns, st.text(alphabet="abc1-. ", max_size=8))
def test_they_agree_with_the_usual_ones(pattern: str, text: str) -> None:
    assume(len(pattern) <= 200)
    try:
        found = search(pattern, text)
    except BadPattern as error:
        assume("states" not in str(error))
        raise
    assert found == bool(re.search(pattern, text))


@given(st.text(max_size=20) | st.text(alphabet=r"ab()[]{}|*+?\^$-0,:P<>", max_size=20), st.text(max_size=10))
def test_garbage_is_matched_or_refused(pattern: str, text: str) -> None:
    try:
        search(pattern, text)
    except BadPattern:
        return
