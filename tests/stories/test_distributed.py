"""Stories of distributed and elastic jobs: gangs, guarantees taken back, shrinking, retries, deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from paddleflow.domain.commands import ReserveRoom, StopJob, SubmitJob
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import (
    Elasticity,
    FlavourRef,
    Framework,
    JobKind,
    JobSpec,
    JobStatus,
    Member,
    RunPolicy,
    Spot,
)
from paddleflow.domain.queries import QueueChange, WhatIf
from paddleflow.domain.users import PLATFORM
from paddleflow.scheduling.decide import Rules
from paddleflow.testing.builders import a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

GPU = resources(gpus=1)
ROOMY = resources("64", "256Gi", gpus=16)


@pytest.fixture
def platform() -> InMemoryPlatform:
    return built()


def built(*, obeys_stop: bool = True) -> InMemoryPlatform:
    nodes = [a_node(f"node-{n}", resources("16", "64Gi", gpus=4)) for n in (1, 2)]
    platform = InMemoryPlatform(nodes, obeys_stop=obeys_stop)
    platform.a_queue("team-a", ROOMY, resources("8", "64Gi", gpus=4))
    platform.a_queue("team-b", ROOMY, resources("8", "64Gi", gpus=4))
    return platform


def gang(
    workers: int = 2,
    *,
    queue: str = "team-a",
    elastic: Elasticity | None = None,
    policy: RunPolicy = RunPolicy(),  # noqa: B008  frozen
    roles: Mapping[str, int] | None = None,
    framework: Framework = Framework.PYTORCH,
) -> SubmitJob:
    members = tuple(
        Member(role=role, replicas=count, flavour=FlavourRef(resources=GPU), command="true")
        for role, count in (roles or {"worker": workers}).items()
    )
    spec = JobSpec(kind=JobKind.DISTRIBUTED, framework=framework, members=members, elastic=elastic, policy=policy)
    return SubmitJob(spec=spec, queue=queue)


def told(platform: InMemoryPlatform, job_id: JobId) -> list[str]:
    return [event.kind for event in platform.story_of(job_id)]


def test_a_gang_starts_together_and_succeeds_with_its_last_task(platform: InMemoryPlatform) -> None:
    job = platform.submit_spec(gang(6))
    assert len(platform.job(job).placements) == 6
    assert platform.job(job).status is JobStatus.RUNNING
    second = platform.submit_spec(gang(4))
    assert platform.job(second).status is JobStatus.INIT, "two of four would fit, and two are none"
    for task in range(6):
        assert platform.job(job).status is JobStatus.RUNNING
        platform.finish(job, task=task)
    assert platform.job(job).status is JobStatus.SUCCEEDED
    assert platform.job(second).status is JobStatus.RUNNING


def test_parameter_servers_are_stopped_when_the_workers_are_done(platform: InMemoryPlatform) -> None:
    job = platform.submit_spec(gang(roles={"pserver": 1, "worker": 2}, framework=Framework.PADDLE))
    for placement in platform.job(job).placements:
        if placement.role == "worker":
            platform.runtime.finish(placement.task_id)
    platform.settle()
    assert platform.job(job).status is JobStatus.SUCCEEDED
    assert EventKind.JOB_STOPPING in told(platform, job)


def test_one_failed_task_ends_the_job_and_its_room_is_free_only_when_all_have_ended(
    platform: InMemoryPlatform,
) -> None:
    job = platform.submit_spec(gang(2))
    platform.finish(job, exit_code=3, task=1)
    ended = platform.job(job)
    assert ended.status is JobStatus.FAILED
    assert ended.message == "worker-1: exit code 3"


def test_a_failed_job_is_tried_again_after_a_while_and_not_for_ever(platform: InMemoryPlatform) -> None:
    job = platform.submit_spec(gang(2, policy=RunPolicy(retries=2, backoff_s=10)))
    for wait_s in (10, 20):
        platform.finish(job, exit_code=1)
        waiting = platform.job(job)
        assert waiting.status is JobStatus.INIT
        assert "tried again" in platform.reads.why(ROOT_ACTOR, job).sentence
        platform.pass_time(wait_s - 1)
        assert platform.job(job).status is JobStatus.INIT
        platform.pass_time(2)
        assert platform.job(job).status is JobStatus.RUNNING
    platform.finish(job, exit_code=1)
    assert platform.job(job).status is JobStatus.FAILED
    assert platform.job(job).failures == 2
    assert len(platform.runtime.launch_counts()) == 6, "three attempts of two tasks, each task a process of its own"


def test_a_deadline_ends_a_job_that_runs_too_long_and_a_ttl_deletes_it_later(platform: InMemoryPlatform) -> None:
    job = platform.submit_spec(gang(2, policy=RunPolicy(deadline_s=100, retries=5, ttl_s=50)))
    platform.pass_time(99)
    assert platform.job(job).status is JobStatus.RUNNING
    platform.pass_time(2)
    assert platform.job(job).status is JobStatus.FAILED
    assert "deadline" in platform.job(job).message
    platform.pass_time(51)
    with platform.store.read() as view:
        assert view.jobs.find(job) is None


def test_a_queue_takes_its_guarantee_back_and_the_evicted_job_waits_again(platform: InMemoryPlatform) -> None:
    borrower = [platform.submit_spec(gang(2, queue="team-b")) for _ in range(4)]
    assert all(platform.job(job).status is JobStatus.RUNNING for job in borrower)
    owner = platform.submit_spec(gang(4, queue="team-a"))
    assert platform.job(owner).status is JobStatus.RUNNING
    evicted = [job for job in borrower if platform.job(job).status is JobStatus.INIT]
    assert len(evicted) == 2, "as many as needed and no more"
    assert "takes back its guarantee" in platform.job(evicted[0]).message
    assert told(platform, evicted[0])[-2:] == [EventKind.JOB_EVICTING, EventKind.JOB_REQUEUED]
    platform.ask(StopJob(id=owner))
    platform.settle()
    assert all(platform.job(job).status is JobStatus.RUNNING for job in borrower), "and starts again when there is room"


def test_a_job_that_does_not_want_to_wait_again_ends_as_preempted(platform: InMemoryPlatform) -> None:
    borrower = platform.submit_spec(gang(8, queue="team-b", policy=RunPolicy(requeue=False)))
    platform.submit_spec(gang(4, queue="team-a"))
    assert platform.job(borrower).status is JobStatus.PREEMPTED


def test_an_elastic_job_grows_into_what_is_idle_and_shrinks_before_anybody_is_evicted(
    platform: InMemoryPlatform,
) -> None:
    elastic = Elasticity(least=2, most=8, sizes=(2, 4, 8), rescale_cost_s=5)
    big = platform.submit_spec(gang(2, queue="team-b", elastic=elastic))
    assert len(platform.job(big).placements) == 8, "nobody else wants the rest"
    guest = platform.submit_spec(gang(3, queue="team-a"))
    assert platform.job(guest).status is JobStatus.RUNNING
    shrunk = platform.job(big)
    assert (shrunk.status, len(shrunk.placements)) == (JobStatus.RUNNING, 4)
    assert shrunk.message == f"shrunk from 8 to 4 so that {guest} can start"
    assert sorted(placement.index for placement in shrunk.placements) == [0, 1, 2, 3]
    published = platform.runtime.published[big]
    assert (published.generation, len(published.tasks)) == (shrunk.generation, 4)
    platform.ask(StopJob(id=guest))
    platform.settle()
    assert len(platform.job(big).placements) == 4, "a change of size must pay for itself first"
    platform.pass_time(61)
    grown = platform.job(big)
    assert len(grown.placements) == 8
    assert EventKind.JOB_EVICTING not in told(platform, big)
    assert len({placement.task_id for placement in grown.placements}) == 8


def test_why_says_when_an_elastic_job_may_grow_again() -> None:
    nodes = [a_node(f"node-{n}", resources("16", "64Gi", gpus=4)) for n in (1, 2)]
    platform = InMemoryPlatform(nodes, rules=Rules(settle_s=20))
    platform.a_queue("team-a", ROOMY, resources("8", "64Gi", gpus=4))
    platform.a_queue("team-b", ROOMY, resources("8", "64Gi", gpus=4))
    elastic = platform.submit_spec(gang(2, queue="team-b", elastic=Elasticity(least=2, most=8)))
    assert "may grow" not in platform.reads.why(ROOT_ACTOR, elastic).sentence, "it has all it can take"
    guest = platform.submit_spec(gang(4, queue="team-a"))
    assert "may grow" not in platform.reads.why(ROOT_ACTOR, elastic).sentence, "there is no room"
    platform.ask(StopJob(id=guest))
    platform.settle()
    platform.pass_time(5)
    why = platform.reads.why(ROOT_ACTOR, elastic)
    # Half a minute of four workers, won back by four more: that is longer than the settle time.
    assert why.sentence.endswith("; it has 4 of at most 8 workers and may grow to 8 in 25 seconds")
    assert why.details["growsTo"] == 8
    platform.pass_time(25)
    assert len(platform.job(elastic).placements) == 8
    assert "may grow" not in platform.reads.why(ROOT_ACTOR, elastic).sentence


def test_an_elastic_job_outlives_a_worker_but_not_its_budget(platform: InMemoryPlatform) -> None:
    elastic = Elasticity(least=1, most=3)
    job = platform.submit_spec(gang(1, elastic=elastic, policy=RunPolicy(retries=1)))
    assert len(platform.job(job).placements) == 3
    platform.finish(job, exit_code=1, task=2)
    left = platform.job(job)
    assert (left.status, len(left.placements), left.failures) == (JobStatus.RUNNING, 2, 1)
    platform.finish(job, exit_code=1, task=1)
    assert platform.job(job).status is JobStatus.FAILED


def test_a_server_killed_at_any_moment_of_a_reclaim_goes_on_with_it() -> None:
    platform = built(obeys_stop=False)
    borrower = platform.submit_spec(gang(8, queue="team-b"))
    owner = platform.submit_spec(gang(4, queue="team-a"))
    late = platform.submit_spec(gang(2, queue="team-b"))
    for _ in range(2):
        assert platform.job(borrower).status is JobStatus.PREEMPTING
        assert platform.job(owner).claim
        assert "room is being freed" in platform.reads.why(ROOT_ACTOR, owner).sentence
        platform.restart()
    for placement in platform.job(borrower).placements:
        platform.runtime.finish(placement.task_id, signal=15)
    platform.settle()
    assert platform.job(owner).status is JobStatus.RUNNING
    assert platform.job(borrower).status is JobStatus.INIT
    assert platform.job(late).status is JobStatus.RUNNING


def test_what_if_tells_and_changes_nothing(platform: InMemoryPlatform) -> None:
    borrower = platform.submit_spec(gang(8, queue="team-b"))
    waiting = platform.submit_spec(gang(6, queue="team-b"))
    asked = platform.reads.what_if(ROOT_ACTOR, WhatIf(job=gang(4, queue="team-a")))
    assert asked.job is not None
    assert asked.job.starts
    assert [each.job_id for each in asked.evictions] == [borrower]
    more = platform.reads.what_if(ROOT_ACTOR, WhatIf(nodes=(a_node("new", resources("16", "64Gi", gpus=8)),)))
    assert [each.job_id for each in more.starts] == [waiting]
    change = QueueChange(name=QueueName("team-b"), max_resources=resources("64", "256Gi", gpus=8))
    nothing = platform.reads.what_if(ROOT_ACTOR, WhatIf(queues=(change,)))
    assert not nothing.starts
    assert platform.job(borrower).status is JobStatus.RUNNING
    assert platform.job(waiting).status is JobStatus.INIT


def test_the_start_of_a_job_is_forecast_from_what_jobs_like_it_took(platform: InMemoryPlatform) -> None:
    for _ in range(12):
        job = platform.submit(GPU, queue="team-b")
        platform.pass_time(100)
        platform.finish(job)
    long = platform.submit_spec(gang(8, queue="team-b"))
    waiting = platform.submit_spec(gang(6, queue="team-b"))
    platform.pass_time(10)
    eta = platform.reads.eta(ROOT_ACTOR, waiting)
    assert eta.low is not None
    assert eta.high is not None
    assert eta.low <= platform.clock.now() + timedelta(seconds=90) <= eta.high
    assert "expected to start" in eta.sentence
    assert platform.reads.eta(ROOT_ACTOR, long).median is None, "it runs already"


def test_without_a_past_nothing_is_forecast(platform: InMemoryPlatform) -> None:
    platform.submit_spec(gang(8, queue="team-b"))
    waiting = platform.submit_spec(gang(6, queue="team-b"))
    eta = platform.reads.eta(ROOT_ACTOR, waiting)
    assert (eta.low, eta.median, eta.high, eta.confidence) == (None, None, None, 0.0)
    assert "too few jobs" in eta.sentence


def test_time_limits_promise_a_start_and_short_jobs_pass_without_delaying_it(platform: InMemoryPlatform) -> None:
    running = platform.submit_spec(gang(6, queue="team-b", policy=RunPolicy(deadline_s=1000)))
    waiting = platform.submit_spec(gang(8, queue="team-b"))
    why = platform.reads.why(ROOT_ACTOR, waiting)
    assert "starts in 17 minutes at the latest" in why.sentence
    short = platform.submit(GPU, queue="team-b", policy=RunPolicy(deadline_s=500))
    long = platform.submit(GPU, queue="team-b")
    assert platform.job(short).status is JobStatus.RUNNING, "it is gone before the promised start"
    assert platform.job(long).status is JobStatus.INIT, "nobody knows how long it runs"
    assert f"kept for {waiting}" in platform.reads.why(ROOT_ACTOR, long).sentence
    platform.pass_time(501)
    assert platform.job(short).status is JobStatus.FAILED
    platform.pass_time(500)
    assert platform.job(running).status is JobStatus.FAILED
    assert platform.job(waiting).status is JobStatus.RUNNING


def test_a_worker_that_is_done_already_holds_up_nobody_when_its_job_shrinks(platform: InMemoryPlatform) -> None:
    elastic = Elasticity(least=2, most=8, sizes=(2, 4, 8))
    big = platform.submit_spec(gang(2, queue="team-b", elastic=elastic))
    platform.finish(big, task=7)
    assert platform.job(big).status is JobStatus.RUNNING, "the others are not done"
    guest = platform.submit_spec(gang(4, queue="team-a"))
    assert platform.job(guest).status is JobStatus.RUNNING
    assert platform.job(big).leaving == ()


def test_a_server_killed_between_a_claim_and_its_evictions_gives_the_claim_up(platform: InMemoryPlatform) -> None:
    borrower = platform.submit_spec(gang(8, queue="team-b"))
    waiting = platform.submit_spec(gang(4, queue="team-b"))
    taken = tuple(
        Spot(role=at.role, index=at.index, node=at.node, gpus=at.gpus) for at in platform.job(borrower).placements[:4]
    )
    platform.ask(ReserveRoom(id=waiting, spots=taken), PLATFORM)
    platform.restart()
    assert platform.job(waiting).claim == (), "nobody was told to go, so the room cannot come"
    assert platform.job(waiting).status is JobStatus.INIT
    assert platform.job(borrower).status is JobStatus.RUNNING
