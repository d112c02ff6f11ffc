"""Forecasts: what is learnt, what is answered, and that the answer is worth something on a replay."""

from __future__ import annotations

import math

import pytest

from paddleflow.domain.errors import Invalid, NotFound
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.simulation.calibrate import Check, calibrate, coverage, narrowest_band
from paddleflow.simulation.chance import Chance
from paddleflow.simulation.cluster import Capacity, like_nodes, one_queue
from paddleflow.simulation.durations import Durations
from paddleflow.simulation.forecast import Band, Effort, band_of, echo, forecast_start
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.synthetic import Recipe, make_trace
from paddleflow.simulation.trace import TraceJob
from paddleflow.simulation.workload import Workload, prepare

Q, OTHER = QueueName("q"), QueueName("other")


def test_remaining_time_is_what_such_jobs_had_left() -> None:
    durations = Durations()
    for seconds in range(1, 101):
        durations.learn(Q, 1, float(seconds))
    assert durations.remaining(Q, 1, 0.0, 0.5) == 51.0
    assert durations.remaining(Q, 1, 60.0, 0.0) == 1.0
    assert durations.remaining(Q, 1, 60.0, 0.999) == 40.0


def test_few_known_jobs_fall_back_to_more_general_ones() -> None:
    durations = Durations()
    for _ in range(30):
        durations.learn(OTHER, 8, 1000.0)
        durations.learn(OTHER, 1, 10.0)
    durations.learn(Q, 8, 1.0)
    assert durations.remaining(Q, 8, 0.0, 0.5) == 1000.0, "the same size elsewhere"
    assert durations.remaining(Q, 64, 20.0, 0.5) == 980.0, "any size, of those that ran so long"


def test_nothing_known_is_a_heavy_tail() -> None:
    durations = Durations()
    assert durations.remaining(Q, 1, 5000.0, 0.5) == 5000.0
    assert durations.remaining(Q, 1, 0.0, 0.5) == 600.0
    assert math.isfinite(durations.remaining(Q, 1, 5000.0, 1.0))


def test_the_distant_past_is_forgotten() -> None:
    durations = Durations()
    for _ in range(1000):
        durations.learn(Q, 1, 10.0)
    for _ in range(1000):
        durations.learn(Q, 1, 20.0)
    assert durations.remaining(Q, 1, 0.0, 0.0) == 20.0


def a_workload(*jobs: TraceJob, gpus: int = 1) -> Workload:
    return prepare(jobs, Capacity(nodes=like_nodes(gpus, gpus), queues=one_queue()))


def job(ident: str, submit: float = 0.0, gpus: int = 1) -> TraceJob:
    return TraceJob(id=ident, row=1, submit_s=submit, duration_s=1.0, gpus=gpus)


def in_line(*jobs: TraceJob, gpus: int = 1) -> OwnScheduler:
    """Everybody submitted at zero, and the first decision made."""
    workload = a_workload(*jobs, gpus=gpus)
    scheduler = OwnScheduler.on(workload.capacity)
    for submission in workload.submissions:
        scheduler.submit(submission, 0.0)
    scheduler.decide(0.0)
    return scheduler


def known(seconds: float) -> Durations:
    durations = Durations()
    for _ in range(50):
        durations.learn(QueueName("everybody"), 1, seconds)
    return durations


EXACT = Effort(samples=4, grain=0.0, band=Band(stretch=1.0))


def test_a_line_of_jobs_of_known_length() -> None:
    scheduler = in_line(job("a"), job("b"), job("c"))
    told = forecast_start(scheduler.ledger, JobId("c"), 0.0, known(100.0), effort=EXACT)
    assert (told.low, told.median, told.high, told.samples) == (200.0, 200.0, 200.0, 4)
    later = forecast_start(scheduler.ledger, JobId("c"), 60.0, known(100.0), effort=EXACT)
    assert later.median == 200.0, "the first has run 60 already"
    assert scheduler.ledger.waiting_of(JobId("c")) is not None, "asking changes nothing"


def test_the_same_question_has_the_same_answer() -> None:
    scheduler = in_line(*(job(f"j{n}") for n in range(9)))
    durations, chance = Durations(), Chance(5)
    for _ in range(200):
        durations.learn(QueueName("everybody"), 1, chance.log_normal(100.0, 1.0))
    told = [forecast_start(scheduler.ledger, JobId("j8"), 0.0, durations) for _ in range(2)]
    assert told[0] == told[1]
    assert told[0].median is not None and told[0].high is not None
    assert told[0].low < told[0].median < told[0].high
    assert told[0].contains(told[0].median)
    assert len(set(told[0].starts)) > 4, "samples differ"


def test_what_is_not_reached_is_later_than() -> None:
    scheduler = in_line(*(job(f"j{n}") for n in range(50)))
    told = forecast_start(
        scheduler.ledger, JobId("j49"), 0.0, known(100.0), effort=Effort(samples=2, most_steps=10, grain=0.0)
    )
    assert (told.median, told.high) == (None, None)
    assert 0 < told.seen_until < 4900
    assert told.low <= told.seen_until
    assert told.contains(4900.0)


def test_looking_coarsely_costs_little_and_changes_little() -> None:
    scheduler = in_line(*(job(f"j{n}") for n in range(300)), gpus=30)
    durations, chance = Durations(), Chance(5)
    for _ in range(200):
        durations.learn(QueueName("everybody"), 1, chance.log_normal(100.0, 0.5))

    def median(grain: float, most_steps: int) -> float | None:
        effort = Effort(samples=4, grain=grain, most_steps=most_steps)
        return forecast_start(scheduler.ledger, JobId("j299"), 0.0, durations, effort=effort).median

    exact = median(0.0, 1_000)
    assert exact is not None
    assert median(0.0, 150) is None, "that is too few steps one by one"
    assert median(0.03, 150) == pytest.approx(exact, rel=0.15)


def test_a_job_that_can_start_now_starts_now() -> None:
    scheduler = in_line(job("a"), gpus=2)
    scheduler.submit(a_workload(job("b"), gpus=2).submissions[0], 5.0)
    told = forecast_start(scheduler.ledger, JobId("b"), 5.0, Durations())
    assert (told.low, told.median, told.high, told.confidence) == (5.0, 5.0, 5.0, 1.0)


def test_bad_questions() -> None:
    scheduler = in_line(job("a"), job("b"))
    with pytest.raises(NotFound):
        forecast_start(scheduler.ledger, JobId("a"), 0.0, Durations())
    for effort in (Effort(samples=3), Effort(samples=0), Effort(most_steps=0), Effort(grain=1.0)):
        with pytest.raises(Invalid):
            forecast_start(scheduler.ledger, JobId("b"), 0.0, Durations(), effort=effort)


def test_the_recent_past_is_expected_again() -> None:
    workload = a_workload(job("a", 0.0), job("b", 50.0), job("c", 90.0))
    told = echo(workload.submissions, 100.0, 60.0)
    assert [(one.entry.job_id, one.at_s) for one in told] == [("b+", 110.0), ("c+", 150.0)]
    assert min(one.entry.seq for one in told) > max(one.entry.seq for one in workload.submissions)


def test_bands_are_as_wide_as_calibration_says() -> None:
    starts = tuple(float(n) for n in range(10, 110, 10))
    told = band_of(starts, 0.0, 100.0, Band(low=0.1, high=0.9, stretch=2.0, confidence=0.8))
    assert (told.low, told.median, told.high) == (5.0, 50.0, 180.0)
    checks = [
        Check(job_id=JobId(f"j{n}"), asked_at=0.0, forecast=told, started_at=at)
        for n, at in enumerate([4.0, 20.0, 95.0, 150.0, 190.0])
    ]
    assert coverage(checks, Band(low=0.1, high=0.9, stretch=1.0)) == pytest.approx(1 / 5)
    assert coverage(checks, Band(low=0.1, high=0.9, stretch=2.0)) == pytest.approx(3 / 5)
    chosen = narrowest_band(checks, 0.8)
    assert coverage(checks, chosen) >= 0.8
    assert chosen.confidence == coverage(checks, chosen)


@pytest.mark.slow
def test_most_starts_fall_into_the_band() -> None:
    jobs = make_trace(Recipe(jobs=600, tenants=2), seed=11)
    workload = prepare(jobs, Capacity(nodes=like_nodes(64, 8), queues=one_queue()), load=0.95)
    found = calibrate(workload, every=5, effort=Effort(samples=8))
    assert len(found.checks) >= 8
    assert found.coverage >= 0.7
