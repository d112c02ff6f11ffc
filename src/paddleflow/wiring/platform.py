"""Settings become a running platform: store, identity, runtimes, reactors, started and stopped together."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from paddleflow.adapters.identity import KeyedIdentity, load_or_create_key
from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.adapters.sql.store import SqlStore
from paddleflow.adapters.system import SystemClock
from paddleflow.domain.clusters import Node
from paddleflow.domain.commands import SeedInstallation
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, NodeName
from paddleflow.domain.resources import CPU, GPU, MEMORY, Resources
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.feed import Feed
from paddleflow.engine.intake import Intake
from paddleflow.engine.job_mounts import JobMounts
from paddleflow.engine.lease import Lease
from paddleflow.engine.logs import Logs
from paddleflow.engine.mounts import MountDesk
from paddleflow.engine.pipelines import PipelineDesk
from paddleflow.engine.reactors.admission import Admission
from paddleflow.engine.reactors.archivist import Archivist
from paddleflow.engine.reactors.launcher import Launcher
from paddleflow.engine.reactors.loop import Reactor, ReactorThread
from paddleflow.engine.reactors.mounter import Mounter
from paddleflow.engine.reactors.observer import Observer
from paddleflow.engine.reactors.runner import Runner
from paddleflow.engine.reactors.timekeeper import Timekeeper
from paddleflow.engine.reactors.timers import Timers
from paddleflow.engine.reads import Reads
from paddleflow.engine.run_reads import RunReads
from paddleflow.engine.run_work import RunWork
from paddleflow.engine.statistics import Sampler, Statistics
from paddleflow.engine.storage_desk import StorageDesk
from paddleflow.engine.storage_reads import StorageReads
from paddleflow.planning.source import Limits
from paddleflow.ports.clock import Clock
from paddleflow.ports.files import Files
from paddleflow.ports.identity import Identity
from paddleflow.ports.mounts import NodeMounts
from paddleflow.ports.runtime import Runtime
from paddleflow.ports.storages import Snapshots, Storages
from paddleflow.ports.store import Store
from paddleflow.scheduling.decide import Rules
from paddleflow.settings import LocalSettings, NodeSettings, PipelineSettings, SchedulerSettings, Settings
from paddleflow.wiring.mount import MountRequest
from paddleflow.wiring.node_mounts import MachineMounts
from paddleflow.wiring.server_files import EveryonesFiles
from paddleflow.wiring.server_storage import OpenedStorages
from paddleflow.wiring.stores import GIB

HOST_NOTE = "the local runtime runs on the host; the image is recorded and not used"
_EMBEDDED_HOLDER = "embedded"
"""A server on SQLite is alone, because it holds the lock of its state directory; after a crash it need not wait for
its own lease to expire."""
_ARCHIVE_WORKERS = 2
"""Snapshots that are made or removed at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What the engine stands on. Tests hand in their own."""

    store: Store
    clock: Clock
    identity: Identity
    runtimes: Mapping[ClusterName, Runtime]
    files: Files
    storages: Storages
    snapshots: Snapshots
    holder: str
    mounts: Mapping[ClusterName, NodeMounts] = field(default_factory=dict)
    """Of the clusters whose nodes are this machine."""


class Platform:
    """The engine with its reactors."""

    def __init__(self, outside: Outside, settings: Settings) -> None:
        self._outside = outside
        self._settings = settings
        store, clock = outside.store, outside.clock
        able = capabilities(outside, settings)
        self.feed = Feed(store)
        self.intake = Intake(store, clock, outside.identity, able)
        rules = scheduling_rules(settings.scheduler)
        self.reads = Reads(store, clock, outside.identity, able, rules)
        self.logs = Logs(store, outside.runtimes)
        self.statistics = Statistics(store, clock, outside.runtimes)
        limits = pipeline_limits(settings.pipelines)
        self.pipelines = _pipeline_desk(outside, self.intake, limits, able)
        self.runs = RunReads(store, outside.files)
        self.storage = _storage_desk(outside, self.intake)
        self.storage_reads = StorageReads(store, clock)
        self.mounts = MountDesk(store=store, intake=self.intake, identity=outside.identity, clock=clock)
        self._workers = ThreadPoolExecutor(settings.pipelines.workers, thread_name_prefix="run-work")
        self._quick_workers = ThreadPoolExecutor(settings.pipelines.workers, thread_name_prefix="run-quick")
        self._runner = Runner(
            store=store,
            intake=self.intake,
            clock=clock,
            work=RunWork(store=store, files=outside.files, clock=clock),
            limits=limits,
            workers=self._workers,
            quick=self._quick_workers,
        )
        run_thread = self._thread(self._runner, "runner")
        self._runner.wake = run_thread.wake
        self._sampler = Sampler(self.statistics, settings.local.sample_every_s)
        job_mounts = {
            cluster: JobMounts(store=store, desk=self.mounts, mounts=mounts)
            for cluster, mounts in outside.mounts.items()
        }
        self._observers = [self._observer(cluster, runtime) for cluster, runtime in outside.runtimes.items()]
        self._reactors = [
            self._admit(rules),
            self._thread(
                Launcher(
                    store=store,
                    intake=self.intake,
                    runtimes=outside.runtimes,
                    stop_grace_s=settings.local.stop_grace_s,
                    identity=outside.identity,
                    python=sys.executable,
                    mounts=job_mounts,
                ),
                "runtime",
            ),
            *(
                self._thread(Mounter(cluster=cluster, store=store, mounts=mounts), "runtime")
                for cluster, mounts in job_mounts.items()
            ),
            self._thread(Timers(store=store, intake=self.intake, clock=clock), "timers"),
            run_thread,
            self._thread(Timekeeper(store=store, intake=self.intake, clock=clock, desk=self.pipelines), "timekeeper"),
            self._archive(),
        ]

    def _admit(self, rules: Rules) -> ReactorThread:
        store, clock = self._outside.store, self._outside.clock
        admission = Admission(store=store, intake=self.intake, clock=clock, host_note=HOST_NOTE, rules=rules)
        return self._thread(admission, "admission")

    def _observer(self, cluster: ClusterName, runtime: Runtime) -> Observer:
        return Observer(
            cluster=cluster,
            runtime=runtime,
            store=self._outside.store,
            intake=self.intake,
            clock=self._outside.clock,
            lease=self._lease("runtime"),
        )

    def _archive(self) -> ReactorThread:
        self._archive_workers = ThreadPoolExecutor(_ARCHIVE_WORKERS, thread_name_prefix="archive")
        self._archivist = Archivist(
            store=self._outside.store,
            intake=self.intake,
            snapshots=self._outside.snapshots,
            unseal=self._outside.identity.unseal,
            workers=self._archive_workers,
        )
        thread = self._thread(self._archivist, "archivist")
        self._archivist.wake = thread.wake
        return thread

    def _lease(self, name: str) -> Lease:
        return Lease(store=self._outside.store, clock=self._outside.clock, name=name, holder=self._outside.holder)

    def _thread(self, reactor: Reactor, lease_name: str) -> ReactorThread:
        return ReactorThread(reactor, feed=self.feed, lease=self._lease(lease_name))

    def start(self) -> bool:
        """Seed what a new installation needs, agree with the runtimes, then react. True for a new installation."""
        seed = SeedInstallation(root_password=self._settings.state.root_password)
        is_new = bool(self.intake.submit(seed, PLATFORM)["isNew"])
        for observer in self._observers:
            observer.start()
        for reactor in self._reactors:
            reactor.start()
        self._sampler.start()
        return is_new

    def stop(self) -> None:
        """Reactors first, so that nobody reacts to a half-stopped platform. Jobs go on without us."""
        self.reads.close()
        self._sampler.stop()
        for reactor in reversed(self._reactors):
            reactor.stop()
        self._runner.abandon()
        self._archivist.abandon()
        self.storage.close()
        for workers in (self._workers, self._quick_workers, self._archive_workers):
            workers.shutdown(wait=False, cancel_futures=True)
        for observer in self._observers:
            observer.stop()
        for runtime in self._outside.runtimes.values():
            runtime.close()
        for mounts in self._outside.mounts.values():
            mounts.close()
        self._outside.store.close()


def _pipeline_desk(outside: Outside, intake: Intake, limits: Limits, able: Capabilities) -> PipelineDesk:
    return PipelineDesk(store=outside.store, intake=intake, files=outside.files, limits=limits, capabilities=able)


def _storage_desk(outside: Outside, intake: Intake) -> StorageDesk:
    return StorageDesk(
        store=outside.store,
        intake=intake,
        files=outside.files,
        storages=outside.storages,
        unseal=outside.identity.unseal,
        mounts=tuple(outside.mounts.values()),
    )


def connect_outside(settings: Settings, state_dir: Path) -> Outside:
    """The real world as the settings describe it."""
    identity = KeyedIdentity(installation_key(state_dir), token_life=timedelta(hours=settings.server.token_life_h))
    shared = bool(settings.state.database_url)
    storages = OpenedStorages()
    store = SqlStore(database_url(settings, state_dir))
    return Outside(
        store=store,
        clock=SystemClock(),
        identity=identity,
        runtimes={DEFAULT_CLUSTER: LocalRuntime(local_options(settings, state_dir))},
        files=EveryonesFiles(store, identity),
        storages=storages,
        snapshots=storages,
        mounts={DEFAULT_CLUSTER: machine_mounts(settings, state_dir)},
        holder=f"{socket.gethostname()}-{os.getpid()}-{identity.new_token_hex()[:8]}" if shared else _EMBEDDED_HOLDER,
    )


def machine_mounts(settings: Settings, state_dir: Path) -> MachineMounts:
    wanted = settings.filesystems
    request = MountRequest(
        cache_dir=wanted.cache_dir,
        cache_size=int(wanted.cache_gib * GIB),
        memory_cache_size=int(wanted.memory_cache_gib * GIB),
    )
    return MachineMounts(state_dir, request=request, idle_s=wanted.mount_idle_s)


def capabilities(outside: Outside, settings: Settings) -> Capabilities:
    return Capabilities(clusters=frozenset(outside.runtimes), ignores_images=settings.local.images == "ignore")


def scheduling_rules(settings: SchedulerSettings) -> Rules:
    return Rules(settle_s=settings.settle_s)


def pipeline_limits(settings: PipelineSettings) -> Limits:
    return Limits(loop_items=settings.max_loop_items, nodes=settings.max_nodes, parallelism=settings.max_parallelism)


def installation_key(state_dir: Path) -> bytes:
    return load_or_create_key(state_dir / "installation.key")


def database_url(settings: Settings, state_dir: Path) -> str:
    """SQLite in the state directory unless told otherwise; ``postgresql://`` means the driver we ship."""
    url = settings.state.database_url
    if not url:
        return f"sqlite:///{state_dir / 'paddleflow.db'}"
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def local_options(settings: Settings, state_dir: Path) -> LocalRuntimeOptions:
    return LocalRuntimeOptions(
        root=state_dir / "local",
        cluster=DEFAULT_CLUSTER,
        nodes=tuple(simulated_nodes(settings.local)),
        log_cap_bytes=int(settings.local.log_cap_mib * 1024 * 1024),
        extra_path=_search_path(os.environ.get("PATH", "")),
        port_range=range(settings.local.first_port, settings.local.last_port + 1),
    )


def _search_path(path: str) -> tuple[str, ...]:
    """Where jobs find programs: this interpreter's own directory first, so that ``python`` is the server's, then what
    the server itself finds. Relative entries would mean something else in every working directory."""
    own = str(Path(sys.executable).parent)
    return tuple(dict.fromkeys([own, *(entry for entry in path.split(":") if entry.startswith("/"))]))


def simulated_nodes(settings: LocalSettings) -> Iterable[Node]:
    for node in settings.nodes:
        for number in range(1, node.count + 1):
            yield _node(node, node.name if node.count == 1 else f"{node.name}-{number}")


def _node(node: NodeSettings, name: str) -> Node:
    amounts = {CPU: node.cpu, MEMORY: node.memory}
    if node.gpus:
        amounts[GPU] = str(node.gpus)
    return Node(
        name=NodeName(name),
        cluster=DEFAULT_CLUSTER,
        capacity=Resources.parse(amounts),
        address="127.0.0.1",
        labels=dict(node.labels),
    )
