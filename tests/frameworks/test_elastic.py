"""An elastic job shrinks for somebody else and grows again, and its training goes on: the loss keeps falling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.frameworks.training import EXAMPLES, Training, role

pytestmark = pytest.mark.timeout(900)

CPUS_A_WORKER = "2"
"""Two nodes of four cores: four workers fill them, and a guest of four cores drives two away."""
GUEST = "4"
SIZE_DEADLINE_S = 180.0
REPORTS = 4


@dataclass(frozen=True)
class Point:
    step: int
    size: int
    loss: float


def curve(log: str) -> list[Point]:
    found = re.findall(r"step (\d+) size (\d+) loss ([0-9.]+)", log)
    return [Point(int(step), int(size), float(loss)) for step, size, loss in found]


def sizes(points: list[Point]) -> list[int]:
    """Each size once for every stretch of time the job had it."""
    stretches = [points[0].size] if points else []
    for point in points:
        if point.size != stretches[-1]:
            stretches.append(point.size)
    return stretches


def points_of(training: Training, job: str) -> list[Point]:
    """What was reported, by step. Which task has rank 0 and reports is the framework's choice."""
    found = [point for text in training.logs(job).values() for point in curve(text)]
    return sorted(found, key=lambda point: point.step)


def wait_for_size(training: Training, job: str, size: int) -> None:
    """Until it has trained for a while with so many."""

    def is_so() -> bool:
        if training.job(job)["status"] not in ("init", "pending", "running"):
            pytest.fail(f"the job has ended: {training.told(job)}")
        latest = points_of(training, job)[-REPORTS:]
        return len(latest) == REPORTS and all(point.size == size for point in latest)

    try:
        training.wait_for(is_so, f"training on {size} workers", deadline_s=SIZE_DEADLINE_S)
    except AssertionError as error:
        error.add_note(training.told(job))
        raise


def shrink_and_grow(training: Training, job: str) -> list[Point]:
    """The curve of a job that had four workers, then two, then four again."""
    wait_for_size(training, job, 4)
    enough = training.directory / f"{job}.enough"
    guest = training.submit_single(f"while [ ! -e {enough} ]; do sleep 0.2; done", GUEST)
    wait_for_size(training, job, 2)
    enough.touch()
    assert training.ended(guest) == "succeeded"
    wait_for_size(training, job, 4)
    return points_of(training, job)


def falls(points: list[Point]) -> bool:
    """From each size to the next, on average over a few reports: a single one may rise by chance."""
    losses = [point.loss for point in points]
    third = len(losses) // 3
    first, second, last = (sum(part) / len(part) for part in (losses[:third], losses[third:-third], losses[-third:]))
    return first > second > last


Submit = Callable[..., str]


@pytest.fixture
def submit(training: Training) -> Iterator[Submit]:
    """Submits an elastic job, which is gone after the test, so that the next one has the room to itself."""
    jobs: list[str] = []

    def send(framework: str, command: str, **env: str) -> str:
        member = role("worker", 4, command, cpu=CPUS_A_WORKER, **env)
        range_ = {"min": 1, "max": 4, "sizes": [1, 2, 4], "rescaleCostSeconds": 0}
        jobs.append(training.submit(framework, member, elastic=range_))
        return jobs[-1]

    yield send
    for job in jobs:
        training.stop(job)
        training.ended(job)


@pytest.fixture
def checkpoint(training: Training, request: pytest.FixtureRequest) -> Path:
    return training.directory / f"{request.node.name}.json"


def test_plain_sockets_follow_the_membership_file(training: Training, submit: Submit, checkpoint: Path) -> None:
    program = EXAMPLES / "elastic_sgd.py"
    job = submit("pytorch", f"python3 {program} --checkpoint {checkpoint} --steps 100000 --report 1 --pause 0.1")
    points = shrink_and_grow(training, job)
    assert sizes(points)[-3:] == [4, 2, 4]
    assert falls(points)
    assert [point.step for point in points] == list(range(len(points))), "no step is lost or done twice"
    training.stop(job)
    assert training.ended(job) == "terminated"
    assert checkpoint.exists(), "what was learned is saved on TERM"


@pytest.mark.uses("torch")
def test_torchrun_shrinks_and_grows(training: Training, submit: Submit, checkpoint: Path) -> None:
    program = EXAMPLES / "torch_elastic.py"
    command = f"{training.bin}/torchrun {program} --checkpoint {checkpoint} --steps 100000 --pause 0.05"
    points = shrink_and_grow(training, submit("pytorch", command, OMP_NUM_THREADS="1"))
    assert {2, 4} <= set(sizes(points))
    assert falls(points)


@pytest.mark.uses("paddlepaddle")
def test_paddle_is_stopped_and_resumed(training: Training, submit: Submit, checkpoint: Path) -> None:
    program = EXAMPLES / "paddle_elastic.py"
    command = f"{training.python} {program} --checkpoint {checkpoint} --steps 100000 --pause 0.05"
    points = shrink_and_grow(training, submit("paddle", command, OMP_NUM_THREADS="1"))
    assert {2, 4} <= set(sizes(points))
    assert falls(points)
