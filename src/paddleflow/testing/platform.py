"""A whole platform in memory on a virtual clock, without threads: it moves when told to, so nothing waits and every
story has one outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from paddleflow.adapters.identity import KeyedIdentity
from paddleflow.adapters.memory.clock import VirtualClock
from paddleflow.adapters.memory.files import MemoryFiles
from paddleflow.adapters.memory.mounts import MemoryMounts
from paddleflow.adapters.memory.runtime import MemoryRuntime
from paddleflow.adapters.memory.storages import RecordedStorages
from paddleflow.adapters.memory.store import MemoryStore
from paddleflow.domain.clusters import Node
from paddleflow.domain.commands import (
    Command,
    CreateGrant,
    CreateQueue,
    CreateUser,
    SeedInstallation,
    SubmitJob,
)
from paddleflow.domain.events import Event
from paddleflow.domain.ids import DEFAULT_CLUSTER, DEFAULT_QUEUE, ROOT, JobId, RunId, UserName
from paddleflow.domain.jobs import FlavourRef, Job, JobSpec, Member, RunPolicy
from paddleflow.domain.resources import NOTHING, Resources
from paddleflow.domain.runs import RunNode
from paddleflow.domain.users import PLATFORM, Actor
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.context import Answer
from paddleflow.engine.feed import Feed
from paddleflow.engine.intake import Intake
from paddleflow.engine.job_mounts import JobMounts
from paddleflow.engine.lease import Lease
from paddleflow.engine.mounts import MountDesk
from paddleflow.engine.pipelines import PipelineDesk, RunRequest
from paddleflow.engine.reactors.admission import Admission
from paddleflow.engine.reactors.archivist import Archivist
from paddleflow.engine.reactors.launcher import Launcher
from paddleflow.engine.reactors.loop import Reactor
from paddleflow.engine.reactors.mounter import Mounter
from paddleflow.engine.reactors.observer import Observer
from paddleflow.engine.reactors.runner import Runner
from paddleflow.engine.reactors.timekeeper import Timekeeper
from paddleflow.engine.reactors.timers import Timers
from paddleflow.engine.reads import Reads
from paddleflow.engine.run_reads import RunReads, RunView
from paddleflow.engine.run_work import RunWork
from paddleflow.engine.storage_desk import StorageDesk
from paddleflow.engine.storage_reads import StorageReads
from paddleflow.planning.source import Limits
from paddleflow.scheduling.decide import DEFAULT_RULES, Rules

ROOT_ACTOR = Actor(name=ROOT)


T = TypeVar("T")
P = ParamSpec("P")


class _AtOnce(Executor):
    """Does the work where it is handed in: no threads, so every story has one outcome."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class InMemoryPlatform:
    def __init__(
        self,
        nodes: Iterable[Node],
        *,
        obeys_stop: bool = True,
        limits: Limits | None = None,
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        self._rules = rules
        self.limits = limits or Limits()
        self.clock = VirtualClock()
        self.files = MemoryFiles(clock=self.clock)
        self.store = MemoryStore()
        self.runtime = MemoryRuntime(nodes=tuple(nodes), clock=self.clock, obeys_stop=obeys_stop)
        identity = self._identity = KeyedIdentity(b"k" * 32, token_life=timedelta(hours=1))
        self.feed = Feed(self.store)
        self.capabilities = Capabilities(clusters=frozenset({DEFAULT_CLUSTER}))
        self.intake = Intake(self.store, self.clock, identity, self.capabilities)
        self.reads = Reads(self.store, self.clock, identity, self.capabilities, rules)
        self.desk = PipelineDesk(
            store=self.store, intake=self.intake, files=self.files, limits=self.limits, capabilities=self.capabilities
        )
        self.runs = RunReads(self.store, self.files)
        self.storages = RecordedStorages()
        self.node_mounts = MemoryMounts()
        self.storage = StorageDesk(
            store=self.store,
            intake=self.intake,
            files=self.files,
            storages=self.storages,
            unseal=identity.unseal,
            mounts=(self.node_mounts,),
        )
        self.storage_reads = StorageReads(self.store, self.clock)
        self.mounts = MountDesk(store=self.store, intake=self.intake, identity=identity, clock=self.clock)
        self.ask(SeedInstallation(root_password="paddleflow"), PLATFORM)
        self.restart()

    def restart(self) -> None:
        """Forget everything but the store and the runtime, as a server that was killed does."""
        runtimes = {DEFAULT_CLUSTER: self.runtime}
        job_mounts = JobMounts(store=self.store, desk=self.mounts, mounts=self.node_mounts)
        self._observer = Observer(
            cluster=DEFAULT_CLUSTER,
            runtime=self.runtime,
            store=self.store,
            intake=self.intake,
            clock=self.clock,
            lease=Lease(store=self.store, clock=self.clock, name="runtime", holder="stories"),
        )
        self._reactors: list[Reactor] = [
            Admission(store=self.store, intake=self.intake, clock=self.clock, host_note="", rules=self._rules),
            Launcher(
                store=self.store,
                intake=self.intake,
                identity=self._identity,
                runtimes=runtimes,
                stop_grace_s=10.0,
                python="python3",
                mounts={DEFAULT_CLUSTER: job_mounts},
            ),
            Mounter(cluster=DEFAULT_CLUSTER, store=self.store, mounts=job_mounts),
            Timers(store=self.store, intake=self.intake, clock=self.clock),
            Runner(
                store=self.store,
                intake=self.intake,
                clock=self.clock,
                work=RunWork(store=self.store, files=self.files, clock=self.clock),
                limits=self.limits,
                workers=_AtOnce(),
                quick=_AtOnce(),
            ),
            Timekeeper(store=self.store, intake=self.intake, clock=self.clock, desk=self.desk),
            Archivist(
                store=self.store,
                intake=self.intake,
                snapshots=self.storages,
                unseal=self._identity.unseal,
                workers=_AtOnce(),
            ),
        ]
        self._after = self.feed.last_seq()
        self._observer.attach()
        for reactor in self._reactors:
            reactor.resync()
        self.settle()

    def settle(self) -> None:
        """Let everybody react until nothing moves any more."""
        while True:
            self._observer.observe(0.0)
            events = self.feed.read(self._after)
            if not events:
                return
            self._after = events[-1].seq
            for reactor in self._reactors:
                reactor.react([event for event in events if event.kind in reactor.kinds])

    def pass_time(self, seconds: float) -> None:
        """Move the clock, let those who watch it act, and settle."""
        self.clock.advance(seconds)
        for reactor in self._reactors:
            reactor.tick()
        self.settle()

    def ask(self, command: Command, actor: Actor = ROOT_ACTOR) -> Answer:
        return self.intake.submit(command, actor)

    def a_user(self, name: str, *queues: str) -> Actor:
        """A new user who may use the queues named."""
        self.ask(CreateUser(name=name, password="secret1"))
        for queue in queues:
            self.ask(CreateGrant(user=UserName(name), resource_type="queue", resource_id=queue))
        return Actor(name=UserName(name))

    def a_queue(
        self, name: str, maximum: Resources, minimum: Resources = NOTHING, policies: tuple[str, ...] = ()
    ) -> None:
        self.ask(
            CreateQueue(name=name, namespace="default", max_resources=maximum, min_resources=minimum, policies=policies)
        )

    def submit(
        self,
        asking: Resources,
        *,
        actor: Actor = ROOT_ACTOR,
        queue: str = DEFAULT_QUEUE,
        priority: str = "",
        labels: Mapping[str, str] | None = None,
        job_id: str = "",
        policy: RunPolicy = RunPolicy(),  # noqa: B008  frozen
    ) -> JobId:
        member = Member(flavour=FlavourRef(resources=asking), command="true")
        spec = JobSpec(members=(member,), policy=policy)
        command = SubmitJob(spec=spec, id=job_id, queue=queue, priority=priority, labels=labels or {})
        return self.submit_spec(command, actor)

    def submit_spec(self, command: SubmitJob, actor: Actor = ROOT_ACTOR) -> JobId:
        answer = self.ask(command, actor)
        self.settle()
        return JobId(str(answer["id"]))

    def finish(self, job_id: JobId, exit_code: int = 0, task: int = 0) -> None:
        """One task of the job ends by itself."""
        self.runtime.finish(self.job(job_id).placements[task].task_id, exit_code)
        self.settle()

    def start_run(self, text: str, *, actor: Actor = ROOT_ACTOR, **request: Any) -> RunId:
        """Hand in a pipeline as YAML and let it begin."""
        answer = self.desk.create_run(actor, RunRequest(text=text, **request))
        self.settle()
        return RunId(str(answer["runID"]))

    def run(self, run_id: RunId) -> RunView:
        return self.runs.run(ROOT_ACTOR, run_id)

    def node(self, run_id: RunId, key: str) -> RunNode:
        return next(node for node in self.run(run_id).nodes if node.key == key)

    def end_step(self, run_id: RunId, key: str, exit_code: int = 0) -> None:
        """The job of a step ends by itself."""
        job_id = self.node(run_id, key).job_id
        assert job_id is not None, f"{key} has no job"
        self.finish(job_id, exit_code)

    def job(self, job_id: JobId) -> Job:
        return self.reads.job(ROOT_ACTOR, job_id)[0]

    def story_of(self, job_id: JobId) -> list[Event]:
        with self.store.read() as view:
            return list(view.events.of_subject(job_id, 100))


__all__ = ["ROOT_ACTOR", "InMemoryPlatform"]
