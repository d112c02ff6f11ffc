"""Who leaves a full cache."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddleflow.pfs.cache.eviction import FILLING_GRACE_S, Candidate, choose

NOW = 10_000.0

candidates = st.lists(
    st.builds(
        Candidate,
        st.text(min_size=1, max_size=8),
        st.integers(0, 1000),
        st.floats(0, NOW + 100),
        st.booleans(),
        st.booleans(),
    ),
    unique_by=lambda one: one.name,
    max_size=30,
)


def names(chosen: list[Candidate]) -> list[str]:
    return [one.name for one in chosen]


def test_the_longest_unused_leave_and_no_more_than_needed() -> None:
    there = [Candidate("new", 10, 300.0), Candidate("old", 10, 100.0), Candidate("older", 10, 50.0)]
    assert names(choose(there, 1, NOW)) == ["older"]
    assert names(choose(there, 10, NOW)) == ["older"]
    assert names(choose(there, 11, NOW)) == ["older", "old"]
    assert names(choose(there, 1000, NOW)) == ["older", "old", "new"]
    assert choose(there, 0, NOW) == []
    assert choose([], 10, NOW) == []


def test_what_is_being_filled_is_left_alone_for_a_while() -> None:
    filling = Candidate("filling", 10, NOW - FILLING_GRACE_S + 1, is_filling=True)
    abandoned = Candidate("abandoned", 10, NOW - FILLING_GRACE_S, is_filling=True)
    assert names(choose([filling, abandoned], 100, NOW)) == ["abandoned"]
    ahead = Candidate("ahead", 10, NOW + 5, is_filling=True)
    assert names(choose([ahead], 1, NOW)) == ["ahead"], "a clock that was set back protects nobody for ever"


def test_what_we_have_open_goes_last() -> None:
    there = [Candidate("open", 10, 1.0, is_open_here=True), Candidate("closed", 10, 500.0)]
    assert names(choose(there, 5, NOW)) == ["closed"]
    assert names(choose(there, 15, NOW)) == ["closed", "open"]


@given(candidates, st.integers(0, 20_000))
def test_enough_or_all_that_may_go(there: list[Candidate], needed: int) -> None:
    chosen = choose(there, needed, NOW)
    freed = sum(one.bytes for one in chosen)
    protected = [one for one in there if one.is_filling and 0 <= NOW - one.last_used < FILLING_GRACE_S]
    assert not set(names(chosen)) & set(names(protected))
    assert freed >= needed or len(chosen) == len(there) - len(protected)
    assert not chosen or freed - chosen[-1].bytes < needed, "the last one was needed too"
    stayed = [one for one in there if one not in chosen and one not in protected]
    for one in chosen:
        assert all((one.is_open_here, one.last_used) <= (other.is_open_here, other.last_used) for other in stayed)
