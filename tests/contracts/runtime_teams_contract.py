"""What every Runtime must do for jobs of several tasks: addresses, membership, some going while others stay."""

from __future__ import annotations

import abc
import threading
from collections.abc import Mapping

import pytest

from paddleflow.domain.errors import Invalid, NotFound, Unavailable
from paddleflow.domain.ids import JobId, TaskId, task_id
from paddleflow.domain.jobs import Address, Membership, Placement, TaskStatus
from tests.contracts.runtime_contract import ENDED, JOB, RuntimeRig, told
from tests.waiting import wait_for

OTHER = JobId(f"{JOB}-x")
MASTER = task_id(JOB, "master", 0)
WORKERS = [task_id(JOB, "worker", index) for index in range(3)]


def membership(rig: RuntimeRig, generation: int, *tasks: TaskId, job: JobId = JOB) -> Membership:
    found = rig.runtime.addresses(job, tasks, 1)
    node = rig.runtime.nodes()[0].name
    return Membership(
        job_id=job,
        generation=generation,
        least=1,
        most=8,
        tasks=tuple(
            (Placement(task_id=task, role="worker", index=index, node=node), found[task])
            for index, task in enumerate(tasks)
        ),
    )


def start(rig: RuntimeRig, *tasks: TaskId, job: JobId = JOB) -> None:
    for task in tasks:
        rig.runtime.launch(rig.make_launch(job, task))
    for task in tasks:
        told(rig.runtime, task, TaskStatus.RUNNING)


def take_all_ports(rig: RuntimeRig, job: JobId) -> int:
    """Reserve until nothing is left; how many there were."""
    for number in range(rig.port_room + 1):
        try:
            rig.runtime.addresses(job, [task_id(job, "filler", number)], 1)
        except Unavailable:
            return number
    raise AssertionError("more ports were given than there are")


def has_ports(rig: RuntimeRig, task: TaskId, count: int) -> bool:
    try:
        return len(rig.runtime.addresses(OTHER, [task], count)[task].ports) == count
    except Unavailable:
        return False


def statuses(rig: RuntimeRig) -> dict[TaskId, TaskStatus]:
    return {report.task_id: report.status for report in rig.runtime.survey()}


class TeamContract(abc.ABC):
    """The module of a subclass gives a fixture ``rig`` that yields a RuntimeRig."""

    def test_every_task_has_a_host_and_ports_of_its_own(self, rig: RuntimeRig) -> None:
        found = rig.runtime.addresses(JOB, [MASTER, *WORKERS], 2)
        other = task_id(OTHER, "worker", 0)
        theirs = rig.runtime.addresses(OTHER, [other], 3)
        assert list(found) == [MASTER, *WORKERS] and list(theirs) == [other]
        assert [len(address.ports) for address in found.values()] == [2, 2, 2, 2]
        ports = [port for address in (*found.values(), *theirs.values()) for port in address.ports]
        assert len(set(ports)) == len(ports) == 11
        assert all(address.host and 0 < port < 65536 for address in found.values() for port in address.ports)

    def test_asking_again_gives_the_same(self, rig: RuntimeRig) -> None:
        found = dict(rig.runtime.addresses(JOB, WORKERS, 2))
        assert rig.runtime.addresses(JOB, WORKERS, 2) == found
        assert rig.runtime.addresses(JOB, WORKERS[1:2], 2) == {WORKERS[1]: found[WORKERS[1]]}
        start(rig, *WORKERS[:2])
        assert rig.runtime.addresses(JOB, WORKERS, 2) == found
        rig.end(WORKERS[0], 0)
        told(rig.runtime, WORKERS[0], *ENDED)
        assert rig.runtime.addresses(JOB, WORKERS, 2) == found

    def test_asking_for_more_or_fewer_keeps_those_in_front(self, rig: RuntimeRig) -> None:
        two = rig.runtime.addresses(JOB, WORKERS, 2)
        four = rig.runtime.addresses(JOB, WORKERS, 4)
        one = rig.runtime.addresses(JOB, WORKERS, 1)
        for task in WORKERS:
            assert four[task].ports[:2] == two[task].ports
            assert one[task].ports == two[task].ports[:1]
        assert len({port for address in four.values() for port in address.ports}) == 12

    def test_a_task_that_needs_no_port_has_an_address_all_the_same(self, rig: RuntimeRig) -> None:
        take_all_ports(rig, OTHER)
        (address,) = rig.runtime.addresses(JOB, [MASTER], 0).values()
        assert address.host and address.ports == ()

    def test_a_negative_number_of_ports_is_refused(self, rig: RuntimeRig) -> None:
        with pytest.raises(Invalid, match="ports"):
            rig.runtime.addresses(JOB, [MASTER], -1)

    @pytest.mark.parametrize("bad", ["../x", "", "a/b", "x" * 300])
    def test_ids_that_could_be_paths_are_refused(self, rig: RuntimeRig, bad: str) -> None:
        placed = Placement(task_id=TaskId(bad), role="worker", index=0, node=rig.runtime.nodes()[0].name)
        who = Membership(
            job_id=JOB, generation=1, least=1, most=1, tasks=((placed, Address(host="127.0.0.1", ports=())),)
        )
        nobody = Membership(job_id=JobId(bad), generation=1, least=1, most=1, tasks=())
        for refused in (
            lambda: rig.runtime.addresses(JobId(bad), [], 1),
            lambda: rig.runtime.addresses(JOB, [TaskId(bad)], 1),
            lambda: rig.runtime.publish(nobody),
            lambda: rig.runtime.publish(who),
        ):
            with pytest.raises(Invalid):
                refused()

    def test_an_address_is_not_yet_a_task(self, rig: RuntimeRig) -> None:
        rig.runtime.addresses(JOB, WORKERS, 1)
        rig.runtime.publish(membership(rig, 1, *WORKERS))
        assert rig.runtime.survey() == []
        assert rig.runtime.usage(WORKERS[0]) is None
        with pytest.raises(NotFound):
            rig.runtime.read_log(JOB, WORKERS[0], 0, 10)
        rig.runtime.acknowledge(WORKERS[0])
        start(rig, WORKERS[0])
        assert statuses(rig) == {WORKERS[0]: TaskStatus.RUNNING}

    def test_when_no_port_is_left_it_is_unavailable_and_nothing_is_kept(self, rig: RuntimeRig) -> None:
        there_are = take_all_ports(rig, OTHER)
        assert there_are > 4
        rig.runtime.remove(OTHER)
        with pytest.raises(Unavailable):
            rig.runtime.addresses(JOB, WORKERS, there_are // 2)
        assert has_ports(rig, task_id(OTHER, "worker", 0), there_are)
        with pytest.raises(Unavailable):
            rig.runtime.addresses(JOB, [MASTER], 1)

    def test_ports_are_given_back_when_the_end_is_acknowledged(self, rig: RuntimeRig) -> None:
        rig.runtime.addresses(JOB, WORKERS[:2], 2)
        start(rig, *WORKERS[:2])
        take_all_ports(rig, OTHER)
        late = task_id(OTHER, "worker", 0)
        rig.runtime.acknowledge(WORKERS[0])
        assert not has_ports(rig, late, 1)
        rig.end(WORKERS[0], 0)
        told(rig.runtime, WORKERS[0], *ENDED)
        assert not has_ports(rig, late, 1)
        rig.runtime.acknowledge(WORKERS[0])
        rig.runtime.acknowledge(WORKERS[0])
        assert not has_ports(rig, late, 3)
        assert has_ports(rig, late, 2)
        with pytest.raises(Unavailable):
            rig.runtime.addresses(JOB, WORKERS[:1], 1)

    def test_ports_of_a_task_stopped_before_its_launch_are_given_back(self, rig: RuntimeRig) -> None:
        rig.runtime.addresses(JOB, [MASTER], 1)
        take_all_ports(rig, OTHER)
        rig.runtime.stop(JOB, [MASTER], grace_s=0)
        told(rig.runtime, MASTER, *ENDED)
        assert not has_ports(rig, task_id(OTHER, "worker", 0), 1)
        rig.runtime.acknowledge(MASTER)
        assert has_ports(rig, task_id(OTHER, "worker", 0), 1)

    def test_ports_are_given_back_when_the_job_is_removed(self, rig: RuntimeRig) -> None:
        rig.runtime.addresses(JOB, WORKERS, 1)
        start(rig, WORKERS[0])
        take_all_ports(rig, OTHER)
        late = task_id(OTHER, "worker", 0)
        rig.end(WORKERS[0], 0)
        told(rig.runtime, WORKERS[0], *ENDED)
        assert not has_ports(rig, late, 1)
        rig.runtime.remove(JOB)
        assert not has_ports(rig, late, 4)
        assert has_ports(rig, late, 3)

    def test_many_who_ask_at_once_are_told_the_same(self, rig: RuntimeRig) -> None:
        answers: list[Mapping[TaskId, Address]] = []
        askers = [
            threading.Thread(target=lambda: answers.append(rig.runtime.addresses(JOB, WORKERS, 2))) for _ in range(8)
        ]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert len(answers) == 8
        assert all(answer == answers[0] for answer in answers)

    def test_tasks_see_the_newest_membership(self, rig: RuntimeRig) -> None:
        start(rig, *WORKERS[:2])
        assert rig.membership_seen_by(WORKERS[0]) is None
        rig.runtime.publish(membership(rig, 1, *WORKERS[:2]))
        assert rig.membership_seen_by(WORKERS[0]) == (1, WORKERS[:2])
        rig.runtime.publish(membership(rig, 5, *WORKERS))
        assert [rig.membership_seen_by(task) for task in WORKERS[:2]] == [(5, WORKERS), (5, WORKERS)]

    def test_a_membership_may_be_published_before_the_first_launch(self, rig: RuntimeRig) -> None:
        rig.runtime.publish(membership(rig, 1, *WORKERS))
        start(rig, WORKERS[2])
        assert rig.membership_seen_by(WORKERS[2]) == (1, WORKERS)

    def test_an_older_membership_changes_nothing(self, rig: RuntimeRig) -> None:
        start(rig, WORKERS[0])
        rig.runtime.publish(membership(rig, 7, *WORKERS))
        rig.runtime.publish(membership(rig, 6, *WORKERS[:1]))
        assert rig.membership_seen_by(WORKERS[0]) == (7, WORKERS)
        rig.runtime.publish(membership(rig, 7, *WORKERS))
        assert rig.membership_seen_by(WORKERS[0]) == (7, WORKERS)

    def test_jobs_see_their_own_membership(self, rig: RuntimeRig) -> None:
        other = task_id(OTHER, "worker", 0)
        start(rig, WORKERS[0])
        start(rig, other, job=OTHER)
        rig.runtime.publish(membership(rig, 3, *WORKERS))
        rig.runtime.publish(membership(rig, 1, other, job=OTHER))
        assert rig.membership_seen_by(WORKERS[0]) == (3, WORKERS)
        assert rig.membership_seen_by(other) == (1, [other])

    def test_removing_a_job_forgets_its_membership(self, rig: RuntimeRig) -> None:
        rig.runtime.publish(membership(rig, 9, *WORKERS))
        rig.runtime.remove(JOB)
        rig.runtime.remove(JOB)
        start(rig, WORKERS[0])
        assert rig.membership_seen_by(WORKERS[0]) is None
        rig.runtime.publish(membership(rig, 1, WORKERS[0]))
        assert rig.membership_seen_by(WORKERS[0]) == (1, WORKERS[:1])

    def test_some_tasks_are_stopped_while_the_others_go_on(self, rig: RuntimeRig) -> None:
        start(rig, *WORKERS)
        rig.runtime.stop(JOB, WORKERS[1:], grace_s=10)
        for task in WORKERS[1:]:
            report = told(rig.runtime, task, *ENDED)
            assert report.message.startswith("stopped by request")
        assert statuses(rig) == {
            WORKERS[0]: TaskStatus.RUNNING,
            WORKERS[1]: TaskStatus.FAILED,
            WORKERS[2]: TaskStatus.FAILED,
        }
        rig.end(WORKERS[0], 0)
        report = told(rig.runtime, WORKERS[0], *ENDED)
        assert (report.status, report.message) == (TaskStatus.SUCCEEDED, "exit code 0")

    def test_a_place_is_filled_again_under_a_new_id(self, rig: RuntimeRig) -> None:
        again = task_id(JOB, "worker", 1, generation=1)
        assert again == f"{WORKERS[1]}-r1"
        before = rig.runtime.addresses(JOB, WORKERS[:2], 1)
        start(rig, *WORKERS[:2])
        rig.runtime.stop(JOB, [WORKERS[1]], grace_s=10)
        told(rig.runtime, WORKERS[1], *ENDED)
        rig.runtime.acknowledge(WORKERS[1])
        after = rig.runtime.addresses(JOB, [WORKERS[0], again], 1)
        assert after[WORKERS[0]] == before[WORKERS[0]]
        start(rig, again)
        rig.runtime.launch(rig.make_launch(JOB, WORKERS[1]))
        assert statuses(rig) == {WORKERS[0]: TaskStatus.RUNNING, again: TaskStatus.RUNNING}
        for task in (WORKERS[0], again):
            rig.end(task, 0)
            told(rig.runtime, task, *ENDED)
        assert [rig.times_started(task) for task in (WORKERS[0], again)] == [1, 1]

    def test_every_task_has_its_own_log_even_of_the_same_place(self, rig: RuntimeRig) -> None:
        again = task_id(JOB, "worker", 0, generation=1)
        for task in (WORKERS[0], WORKERS[1]):
            start(rig, task)
            rig.write(task, f"{task}\n")
        logged = {task: wait_for(lambda task=task: read(rig, task), "its log") for task in WORKERS[:2]}  # type: ignore[misc]
        rig.end(WORKERS[0], 1)
        told(rig.runtime, WORKERS[0], *ENDED)
        start(rig, again)
        rig.write(again, "anew\n")
        assert wait_for(lambda: read(rig, again), "its log") == "anew\n"
        assert logged == {task: f"{task}\n" for task in WORKERS[:2]}
        assert read(rig, WORKERS[0]) == logged[WORKERS[0]]

    def test_a_job_of_many_tasks_is_removed_whole(self, rig: RuntimeRig) -> None:
        again = task_id(JOB, "worker", 0, generation=1)
        rig.runtime.publish(membership(rig, 1, *WORKERS))
        start(rig, *WORKERS[:2])
        rig.runtime.stop(JOB, WORKERS, grace_s=10)
        for task in WORKERS:
            told(rig.runtime, task, *ENDED)
        start(rig, again)
        rig.end(again, 0)
        told(rig.runtime, again, *ENDED)
        rig.runtime.acknowledge(WORKERS[0])
        rig.runtime.remove(JOB)
        assert rig.runtime.survey() == []
        for task in (*WORKERS, again):
            assert rig.runtime.usage(task) is None
            with pytest.raises(NotFound):
                rig.runtime.read_log(JOB, task, 0, 10)


def read(rig: RuntimeRig, task: TaskId) -> str | None:
    """The whole lines of its log, or None while there are none."""
    content = rig.runtime.read_log(JOB, task, 0, 1000).content.decode()
    return content if content.endswith("\n") else None
