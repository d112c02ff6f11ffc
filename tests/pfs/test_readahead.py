"""How far ahead of a reader to ask."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddleflow.pfs.readahead import BACK, FIRST_WINDOW, FORWARD, LARGEST_WINDOW, MIB, PART, Pattern, advance, parts

HUGE = 1 << 40
KIB = 1 << 10


def follow(
    reads: list[tuple[int, int]], file_size: int = HUGE, pressure: float = 0.0
) -> tuple[Pattern, list[tuple[int, int]]]:
    pattern, asked = Pattern(), []
    for start, size in reads:
        pattern, wanted = advance(pattern, start, size, file_size, pressure)
        asked.append(wanted)
    return pattern, asked


def stream(count: int, size: int = 128 * KIB, start: int = 0) -> list[tuple[int, int]]:
    return [(start + index * size, size) for index in range(count)]


def test_the_first_read_from_the_beginning_asks_for_a_window() -> None:
    assert follow([(0, 4096)])[1] == [(4096, FIRST_WINDOW)]


def test_a_stream_doubles_its_window_up_to_the_largest() -> None:
    pattern, asked = follow(stream(2000))
    assert pattern.window == LARGEST_WINDOW
    sizes = [size for _, size in asked if size]
    assert max(sizes) <= LARGEST_WINDOW
    assert len(sizes) < 100, "many reads, few requests"


def test_a_stream_never_waits_for_what_was_not_asked_for() -> None:
    """Each read but the first lies within what was asked for before."""
    pattern, until = Pattern(), 0
    for start, size in stream(1000):
        assert not start or start + size <= until
        pattern, (begin, length) = advance(pattern, start, size, HUGE)
        if length:
            assert begin == max(until, start + size), "each byte once, without gaps"
            until = begin + length


def test_nothing_is_asked_for_beyond_the_end() -> None:
    _, asked = follow(stream(40), file_size=3 * MIB)
    assert max(sum(one) for one in asked) == 3 * MIB
    assert follow([(0, 4096)], file_size=4096)[1] == [(0, 0)]
    assert follow([(0, 10), (20_000, 10)], file_size=10)[1] == [(0, 0), (0, 0)]


def test_random_reads_ask_for_nothing() -> None:
    places = [700, 3, 4000, 90, 20000, 1500, 60000, 444, 81]
    pattern, asked = follow([(place * 10 * MIB, 4096) for place in places])
    assert asked == [(0, 0)] * len(places) and pattern.window == 0


def test_a_jump_halves_and_waits_for_proof() -> None:
    reads = stream(400)
    before, _ = follow(reads)
    pattern, wanted = advance(before, 1000 * MIB, 4096, HUGE)
    assert wanted == (0, 0) and pattern.window == before.window // 2
    pattern, (begin, length) = advance(pattern, 1000 * MIB + 4096, 4096, HUGE)
    assert begin == 1000 * MIB + 8192 and length == before.window // 2


def test_small_jumps_are_part_of_the_stream() -> None:
    pattern = Pattern()
    for start in [0, 256 * KIB, 128 * KIB, 384 * KIB, 640 * KIB, 512 * KIB, 768 * KIB]:
        pattern, _ = advance(pattern, start, 128 * KIB, HUGE)
        assert pattern.window >= FIRST_WINDOW and not pattern.jumps
    for start in (pattern.reached + FORWARD, pattern.reached - BACK):
        assert not advance(pattern, start, 4096, HUGE)[0].jumps
    for start in (pattern.reached + FORWARD + 1, 5 * FORWARD):
        assert advance(pattern, start, 4096, HUGE)[0].jumps == 1


def test_from_the_beginning_again_is_a_new_stream() -> None:
    before, _ = follow(stream(400))
    assert advance(before, 0, 4096, HUGE)[0].window == FIRST_WINDOW
    pattern, _ = advance(before, 0, 4096, HUGE)
    assert advance(pattern, 4096, 4096, HUGE)[1][1] > 0


def test_order_brings_the_window_back() -> None:
    pattern, _ = follow([(100 * MIB, 4096), (9000 * MIB, 4096)])
    assert pattern.window == 0
    pattern, wanted = advance(pattern, 9000 * MIB + 4096, 4096, HUGE)
    assert wanted == (9000 * MIB + 8192, FIRST_WINDOW)


def test_memory_pressure_shrinks_the_window() -> None:
    assert max(size for _, size in follow(stream(2000), pressure=0.5)[1]) <= LARGEST_WINDOW // 2
    assert all(not size for _, size in follow(stream(100), pressure=0.95)[1])
    assert max(size for _, size in follow(stream(100), pressure=0.89)[1]) >= FIRST_WINDOW


@given(
    st.lists(st.tuples(st.integers(0, 100 * MIB), st.integers(0, 4 * MIB)), max_size=60),
    st.integers(0, 100 * MIB),
    st.floats(0, 1),
)
def test_whatever_is_read_the_window_keeps_its_bounds(
    reads: list[tuple[int, int]], file_size: int, pressure: float
) -> None:
    pattern = Pattern()
    for start, size in reads:
        pattern, (begin, length) = advance(pattern, start, size, file_size, pressure)
        end = min(start + size, file_size)
        assert pattern.window == 0 or FIRST_WINDOW <= pattern.window <= LARGEST_WINDOW
        if length:
            assert end <= begin and length > 0 and begin + length <= min(end + LARGEST_WINDOW, file_size)


@given(st.integers(0, 1 << 40), st.integers(0, 100 << 20))
def test_parts_are_the_whole_range_and_cross_no_border(start: int, size: int) -> None:
    cut = list(parts(start, size))
    assert sum(length for _, length in cut) == size
    for begin, length in cut:
        assert begin == start
        assert length > 0
        assert begin // PART == (begin + length - 1) // PART
        start += length
