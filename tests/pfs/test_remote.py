"""Workers: what is asked of them is answered, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from paddleflow.domain.errors import Invalid, NotFound, Unavailable
from paddleflow.pfs.backstage import Cached, Found, ObjectVersion, Page
from paddleflow.pfs.fuse.loop import Loop
from paddleflow.pfs.later import Later
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.pfs.remote import RemoteBackstage
from paddleflow.pfs.wire import Inbox, pack
from paddleflow.pfs.worker import Question
from paddleflow.ports.objects import ObjectEntry, Traits
from paddleflow.wiring.stores import StorePlan, cache_levels

WORKER = (sys.executable, "-m", "paddleflow.wiring.storage_worker")


class Workers:
    """A backstage with a loop that runs until something is answered."""

    def __init__(self, plan: MountPlan, argv: tuple[str, ...] = WORKER) -> None:
        self.loop = Loop(poll=False)
        self.backstage = RemoteBackstage(argv, json.dumps(plan.to_json()), 2, self.loop)

    def run(self, *answers: Later[Any]) -> list[Any]:
        for answer in answers:
            answer.when_done(lambda: self.loop.call_soon(self.loop.stop))
        while not all(answer.is_done for answer in answers):
            self.loop._is_stopped = False
            self.loop.run()
        return [answer.result() for answer in answers]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    for number in range(50):
        (tmp_path / f"files/f{number}").write_bytes(os.urandom(1000))
    return tmp_path / "files"


@pytest.fixture
def plan(files: Path, tmp_path: Path) -> MountPlan:
    store = StorePlan(type="local", root=str(files))
    return MountPlan(
        name="a",
        mountpoint="/nowhere",
        state_dir=str(tmp_path),
        options=MountOptions(),
        levels=cache_levels(str(tmp_path / "cache")),
        stores=(store.to_json(),),
    )


@pytest.fixture
def workers(plan: MountPlan) -> Iterator[Workers]:
    workers = Workers(plan)
    yield workers
    for pid in workers.backstage.pids:
        os.kill(pid, signal.SIGCONT)
    workers.backstage.stop()
    workers.loop.close()


def test_a_plan_travels_whole(plan: MountPlan) -> None:
    assert MountPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_answers_and_errors_arrive(workers: Workers, files: Path) -> None:
    asked = [workers.backstage.ask(number, "stat", f"f{number}") for number in range(50)]
    assert [found.entry.size for found in workers.run(*asked)] == [1000] * 50
    with pytest.raises(NotFound):
        workers.run(workers.backstage.ask(0, "stat", "nothing"))
    version = asked[0].result().version
    (cached,) = workers.run(workers.backstage.ask(0, "fetch", version, 0, -1))
    assert cached.is_complete and Path(cached.path).read_bytes() == (files / "f0").read_bytes()


def test_what_a_dead_worker_was_asked_its_successor_answers(workers: Workers) -> None:
    before = workers.backstage.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    asked = [workers.backstage.ask(number, "stat", f"f{number}") for number in range(50)]
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert [found.entry.size for found in workers.run(*asked)] == [1000] * 50
    assert not set(before) & set(workers.backstage.pids)


def test_a_large_question_to_a_worker_that_does_not_read_waits(workers: Workers) -> None:
    (pid, _) = workers.backstage.pids
    os.kill(pid, signal.SIGSTOP)
    asked = [workers.backstage.ask(0, "stat", "x" * 100_000) for _ in range(20)]
    assert workers.backstage.pending == 20
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(Invalid):
        workers.run(*asked)
    assert all(answer.is_done for answer in asked)


def test_a_question_that_kills_every_worker_gets_an_error(plan: MountPlan) -> None:
    workers = Workers(plan, (sys.executable, "-c", "import sys; sys.exit(3)"))
    with pytest.raises(Unavailable, match="died several times"):
        workers.run(workers.backstage.ask(0, "stat", "f0"))
    workers.backstage.stop()
    workers.loop.close()


def test_workers_end_with_whoever_asks_them(plan: MountPlan) -> None:
    workers = Workers(plan)
    workers.run(workers.backstage.ask(0, "stat", "f0"), workers.backstage.ask(1, "stat", "f0"))
    watched = [os.pidfd_open(pid) for pid in workers.backstage.pids]
    workers.backstage.stop()
    workers.loop.close()
    for fd in watched:
        os.close(fd)
    assert all(not Path(f"/proc/{pid}").exists() for pid in workers.backstage.pids)


def test_messages_come_out_whole_however_they_come_in() -> None:
    question: Question = (7, "put", ("a", "b"), {"mode": None})
    stream = pack(question) + pack("x" * 100_000)
    inbox = Inbox()
    received = [message for at in range(0, len(stream), 999) for message in inbox.feed(stream[at : at + 999])]
    assert received == [question, "x" * 100_000]


@pytest.mark.parametrize("cut", [1, 3, 5, 1 << 20])
def test_what_travels_arrives_as_it_was(cut: int) -> None:
    version = ObjectVersion("store", "a/ä\udcff", "etag", 5)
    traits = Traits(
        real_directories=True,
        atomic_rename=False,
        holds_modes=True,
        holds_links=False,
        holds_xattrs=True,
        checked_reads=False,
    )
    entry = ObjectEntry(key="a/ä\udcff", size=5, modified_ns=3, version="etag", mode=0o640, uid=1, link_target="x")
    found = Found(entry, version, traits)
    messages = [Page([found, Found(replace(entry, is_directory=True), None, traits)], True), Cached("p", True, 0.5)]
    sent = b"".join(pack(message) for message in messages)
    inbox = Inbox()
    arrived = [one for at in range(0, len(sent), cut) for one in inbox.feed(sent[at : at + cut])]
    assert arrived == messages
    with pytest.raises(FrozenInstanceError):
        arrived[0].is_last = False
