"""Trying again, on a clock of our own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.adapters.objects.retry import WAIT_FIRST, Patience, Retry
from paddleflow.domain.errors import Denied, DiskFull, Invalid, NotFound, PaddleFlowError, Stale, Unavailable


@dataclass
class World:
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    each_takes: float = 0.0

    def sleep(self, pause: float) -> None:
        self.pauses.append(pause)
        self.now += pause

    def retry(self, chance: float = 1.0, **patience: float) -> Retry:
        return Retry(patience=Patience(**patience), clock=lambda: self.now, sleep=self.sleep, chance=lambda: chance)  # type: ignore[arg-type]

    def failing(self, times: int, error: PaddleFlowError | None = None) -> Failing:
        return Failing(self, times, error or Unavailable("busy"))


@dataclass
class Failing:
    world: World
    times: int
    error: PaddleFlowError
    calls: int = 0

    def __call__(self) -> str:
        self.calls += 1
        self.world.now += self.world.each_takes
        if self.calls <= self.times:
            raise self.error
        return "done"


def test_the_pauses_grow_up_to_a_limit() -> None:
    world = World()
    work = world.failing(5)
    assert world.retry(attempts=6, first_pause_s=1, growth=2, longest_pause_s=5).run(work) == "done"
    assert world.pauses == [1, 2, 4, 5, 5]


def test_attempts_are_counted() -> None:
    world = World()
    work = world.failing(100)
    with pytest.raises(Unavailable, match="busy"):
        world.retry(attempts=3).run(work)
    assert work.calls == 3


def test_no_attempt_begins_after_the_deadline() -> None:
    world = World(each_takes=20)
    work = world.failing(100)
    with pytest.raises(Unavailable):
        world.retry(attempts=100, deadline_s=60).run(work)
    assert work.calls == 3


@pytest.mark.parametrize("error", [DiskFull, Denied, NotFound, Stale, Invalid])
def test_what_will_not_get_better_is_not_tried_again(error: type[PaddleFlowError]) -> None:
    world = World()
    work = world.failing(1, error("no"))
    with pytest.raises(error):
        world.retry().run(work)
    assert work.calls == 1


def test_the_wish_of_the_server_is_the_least() -> None:
    world = World()
    world.retry(first_pause_s=1).run(world.failing(2, Unavailable("busy", details={WAIT_FIRST: 1.5})))
    assert world.pauses == [1.5, 2]
    with pytest.raises(Unavailable):
        world.retry(deadline_s=60).run(world.failing(1, Unavailable("busy", details={WAIT_FIRST: 3600})))


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_between_half_and_all_of_the_full_one(failures: int, chance: float) -> None:
    patience = Patience()
    full = patience.pause(failures, 1.0)
    assert full / 2 <= patience.pause(failures, chance) <= full <= patience.longest_pause_s
