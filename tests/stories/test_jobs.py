"""Stories of jobs and queues, told on the whole platform in memory. Nothing here waits."""

from __future__ import annotations

import pytest

from paddleflow.domain.commands import DeleteJob, DeleteQueue, StopJob, SubmitJob, UpdateJob, UpdateQueue
from paddleflow.domain.errors import Conflict, Denied, Duplicate, InUse, Invalid, NotFound
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import QueueName, task_id
from paddleflow.domain.jobs import JobSpec, JobStatus
from paddleflow.domain.queries import JobFilter, PageRequest
from paddleflow.testing.builders import a_member, a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

ONE_GPU = resources(gpus=1)


@pytest.fixture
def platform() -> InMemoryPlatform:
    return InMemoryPlatform([a_node("node-1", resources("8", "32Gi", gpus=2))])


def worker(job_id: str) -> str:
    return task_id(job_id, "worker", 0)  # type: ignore[arg-type]


def told(platform: InMemoryPlatform, job_id: str) -> list[str]:
    return [event.kind for event in platform.story_of(job_id)]  # type: ignore[arg-type]


def test_a_job_lives_from_submission_to_success(platform: InMemoryPlatform) -> None:
    job = platform.submit(ONE_GPU)
    assert platform.job(job).status is JobStatus.RUNNING
    platform.clock.advance(90)
    platform.runtime.finish(worker(job), exit_code=0)
    platform.settle()
    ended = platform.job(job)
    assert ended.status is JobStatus.SUCCEEDED
    assert ended.finished_at and ended.activated_at and (ended.finished_at - ended.activated_at).total_seconds() == 90
    assert told(platform, job) == [
        EventKind.JOB_SUBMITTED,
        EventKind.JOB_ADMITTED,
        EventKind.JOB_STARTED,
        EventKind.JOB_FINISHED,
    ]


def test_the_third_job_waits_for_a_gpu_and_can_say_why(platform: InMemoryPlatform) -> None:
    first, _, third = (platform.submit(ONE_GPU) for _ in range(3))
    assert platform.job(third).status is JobStatus.INIT
    assert "nvidia.com/gpu" in platform.reads.why(ROOT_ACTOR, third).sentence
    platform.runtime.finish(worker(first), exit_code=0)
    platform.settle()
    assert platform.job(third).status is JobStatus.RUNNING
    assert platform.job(third).placements[0].gpus == (0,)


def test_an_urgent_job_goes_first_and_a_raised_one_overtakes(platform: InMemoryPlatform) -> None:
    running = [platform.submit(ONE_GPU) for _ in range(2)]
    normal, low, high = (platform.submit(ONE_GPU, priority=p) for p in ("NORMAL", "LOW", "HIGH"))
    platform.ask(UpdateJob(id=low, priority="VERY_HIGH"))
    platform.settle()
    started = []
    for job in running:
        platform.runtime.finish(worker(job), exit_code=0)
        platform.settle()
        started += [j for j in (normal, low, high) if platform.job(j).status is JobStatus.RUNNING and j not in started]
    assert started == [low, high]


def test_a_queue_maximum_lets_others_use_the_rest(platform: InMemoryPlatform) -> None:
    platform.a_queue("small", resources("8", "32Gi", gpus=1))
    jobs = [platform.submit(ONE_GPU, queue="small") for _ in range(2)]
    other = platform.submit(ONE_GPU)
    assert [platform.job(j).status for j in (*jobs, other)] == [JobStatus.RUNNING, JobStatus.INIT, JobStatus.RUNNING]
    platform.ask(UpdateQueue(name=QueueName("small"), max_resources=resources("8", "32Gi", gpus=2)))
    platform.settle()
    assert "has 0 free in all" in platform.reads.why(ROOT_ACTOR, jobs[1]).sentence


def test_users_need_a_grant_to_submit(platform: InMemoryPlatform) -> None:
    platform.a_queue("team", resources("8", "32Gi"))
    stranger, member = platform.a_user("mallory"), platform.a_user("alice", "team")
    with pytest.raises(Denied, match="grant"):
        platform.submit(resources(), actor=stranger, queue="team")
    job = platform.submit(resources(), actor=member, queue="team")
    for forbidden in (StopJob(id=job), UpdateJob(id=job), DeleteJob(id=job)):
        with pytest.raises(Denied):
            platform.ask(forbidden, stranger)
    with pytest.raises(Denied):
        platform.reads.job(stranger, job)
    assert platform.reads.events(stranger, 0, 1000)[0] == ()
    assert {event.owner for event in platform.reads.events(member, 0, 1000)[0]} == {"alice"}


def test_stopping_at_each_point(platform: InMemoryPlatform) -> None:
    running = [platform.submit(ONE_GPU) for _ in range(2)]
    waiting = platform.submit(ONE_GPU)
    platform.ask(StopJob(id=waiting))
    assert platform.job(waiting).status is JobStatus.TERMINATED
    platform.ask(StopJob(id=running[0]))
    assert platform.job(running[0]).status is JobStatus.TERMINATING
    platform.settle()
    assert platform.job(running[0]).status is JobStatus.TERMINATED
    with pytest.raises(Conflict):
        platform.ask(StopJob(id=running[0]))


def test_what_can_never_run_is_refused_and_leaves_nothing(platform: InMemoryPlatform) -> None:
    before = platform.feed.last_seq()
    with pytest.raises(Invalid, match=r"nvidia.com/gpu"):
        platform.submit(resources(gpus=3))
    with pytest.raises(Invalid, match="cpu"):
        platform.submit(resources(cpu="21"))
    with pytest.raises(Invalid, match="nowhere"):
        platform.submit(resources(), queue="nowhere")
    assert platform.feed.last_seq() == before
    assert platform.reads.jobs(ROOT_ACTOR, JobFilter(), PageRequest()).rows == ()


def test_a_restart_at_any_time_loses_nothing_and_repeats_nothing(platform: InMemoryPlatform) -> None:
    first, second = platform.submit(ONE_GPU), platform.submit(ONE_GPU)
    platform.restart()
    third = platform.submit(ONE_GPU)
    platform.runtime.finish(worker(first), exit_code=3)
    platform.restart()
    assert [platform.job(j).status for j in (first, second, third)] == [
        JobStatus.FAILED,
        JobStatus.RUNNING,
        JobStatus.RUNNING,
    ]
    for job in (first, second, third):
        kinds = told(platform, job)
        assert len(kinds) == len(set(kinds))
    assert sorted(launch.task_id for launch in platform.runtime.launches) == sorted(map(worker, (first, second, third)))


def test_a_queue_in_use_cannot_be_deleted(platform: InMemoryPlatform) -> None:
    platform.a_queue("team", resources("8", "32Gi"))
    job = platform.submit(resources(), queue="team")
    with pytest.raises(InUse, match=job):
        platform.ask(DeleteQueue(name=QueueName("team")))
    platform.runtime.finish(worker(job), exit_code=0)
    platform.settle()
    platform.ask(DeleteQueue(name=QueueName("team")))


def test_a_deleted_job_is_gone_with_its_log(platform: InMemoryPlatform) -> None:
    job = platform.submit(resources())
    with pytest.raises(Conflict, match="stop it first"):
        platform.ask(DeleteJob(id=job))
    platform.runtime.finish(worker(job), exit_code=0)
    platform.settle()
    platform.ask(DeleteJob(id=job))
    platform.settle()
    with pytest.raises(NotFound):
        platform.job(job)
    with pytest.raises(NotFound):
        platform.runtime.read_log(job, worker(job), 0, 10)  # type: ignore[arg-type]


def test_an_id_can_be_used_again_once_the_old_job_is_cleared_away(platform: InMemoryPlatform) -> None:
    job = platform.submit(resources(), job_id="mine")
    platform.runtime.finish(worker(job), exit_code=0)
    platform.settle()
    platform.ask(DeleteJob(id=job))
    with pytest.raises(Duplicate, match="cleared away"):
        platform.submit(resources(), job_id="mine")
    platform.restart()  # killed before it could clear: the next server does
    platform.submit(resources(), job_id="mine")
    assert platform.job(job).status is JobStatus.RUNNING
    assert len(platform.runtime.launches) == 2


def test_labels_are_stored_and_filter(platform: InMemoryPlatform) -> None:
    red = platform.submit(resources(), labels={"team": "red"})
    platform.submit(resources(), labels={"team": "blue"})
    found = platform.reads.jobs(ROOT_ACTOR, JobFilter(labels={"team": "red"}), PageRequest()).rows
    assert [job.id for job in found] == [red]


def test_the_same_key_is_one_request(platform: InMemoryPlatform) -> None:
    command = SubmitJob(spec=JobSpec(members=(a_member(),)))
    first = platform.intake.submit(command, ROOT_ACTOR, idempotency_key="k1")
    again = platform.intake.submit(command, ROOT_ACTOR, idempotency_key="k1")
    assert first == again
    with pytest.raises(Conflict, match="another request"):
        platform.intake.submit(
            SubmitJob(spec=JobSpec(members=(a_member(command="other"),))), ROOT_ACTOR, idempotency_key="k1"
        )
