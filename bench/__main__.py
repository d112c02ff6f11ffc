"""``python -m bench`` measures, prints one table and keeps it in bench/results. A missed target is not an error."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import load, pipelines, policies, scheduling, slurm, startup
from bench.figures import Figure, machine, save, table
from bench.fill import fill
from bench.processes import Missing, wait_until
from bench.server import API, JOB, Server, serving

MIB = 1024 * 1024
QUIET_LOAD = 0.5
"""Processes that wanted a CPU in the last minute; above this, others were measured too."""
SUBMITTERS = 4
"""Calls of sbatch at a time: more did not make it faster on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    submits: int
    stored: int
    reads: int
    lists: int
    wide_jobs: int
    narrow_jobs: int
    wide_slots: int = 64
    """Room for many jobs at once, for both systems. Slurm fills free CPUs about once a second, however short the jobs,
    so with few of them one measures that second; with many, the work of starting and ending a job."""
    held: int = 200


FULL = Sizes(submits=3000, stored=100_000, reads=5000, lists=1000, wide_jobs=1000, narrow_jobs=100)
SHORT = Sizes(submits=300, stored=2000, reads=500, lists=100, wide_jobs=100, narrow_jobs=20, held=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Jobs a second, from the first submit to the last end."""

    one_by_one: float
    array: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What Slurm did, or why it did not."""

    absent: str = ""
    ready_s: float | None = None
    rss_mib: float | None = None
    submits: float | None = None
    wide: Throughput | None = None
    narrow: Throughput | None = None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="small numbers: shows that it works, proves nothing")
    parser.add_argument("--only-scheduler", action="store_true", help="neither servers nor Slurm")
    parser.add_argument("--trace", type=Path, help="compare policies on this trace too, e.g. philly.csv")
    parser.add_argument("--trace-gpus", type=int, default=2000, help="of the cluster it is replayed on")
    parser.add_argument("--trace-limit", type=int, help="only so many of its jobs")
    arguments = parser.parse_args()
    sizes = SHORT if arguments.short else FULL
    load_before = os.getloadavg()[0]
    figures = [] if arguments.only_scheduler else list(measure(sizes))
    if not arguments.only_scheduler:
        figures += pipelines.figures(pipelines.SHORT if arguments.short else pipelines.FULL)
    say("scheduler")
    figures += scheduling.figures()
    print(f"\n{machine()}{'; short run, small numbers' if arguments.short else ''}\n")
    if load_before > QUIET_LOAD:
        print(f"The machine was busy with other work (load {load_before:.1f}): these figures say little.\n")
    print(table(figures))
    cases = policies.made_up(400 if arguments.short else 4000)
    if arguments.trace is not None:
        cases += policies.from_trace(arguments.trace, arguments.trace_gpus, arguments.trace_limit)
    for case in cases:
        say(f"policies: {case.name}")
        print(f"\n{policies.table(case, policies.compare(case))}", flush=True)
    kept = save(figures, short=arguments.short, load_before=load_before)
    print(f"\nkept in {os.path.relpath(kept)}")
    return 0


def measure(sizes: Sizes) -> Iterator[Figure]:
    slots = os.cpu_count() or 1
    yield from start_costs()
    say("Slurm")
    peer = measure_slurm(sizes, slots)
    with tempfile.TemporaryDirectory(prefix="bench-paddleflow-") as name:
        folder = Path(name)
        say("server: start, submits")
        yield from backlog_figures(folder / "backlog", sizes, peer)
        say(f"server: {sizes.stored:,} jobs stored")
        # A folder of its own: the backlog would be worked off while the reads are measured.
        (folder / "stored").mkdir(mode=0o700)
        yield from read_figures(folder / "stored", sizes)
        say("server: jobs from submit to end")
        wide = run_jobs(folder / "wide", sizes.wide_jobs, sizes.wide_slots)
        narrow = run_jobs(folder / "narrow", sizes.narrow_jobs, slots)
    yield from job_figures(sizes, slots, peer, wide, narrow)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def start_costs() -> Iterator[Figure]:
    say("start-up costs")
    floor = startup.cpu_seconds([sys.executable, "-c", "pass"])
    commands = {
        "paddleflow --help, CPU": (0.2, [str(Path(sys.executable).with_name("paddleflow")), "--help"]),
        "import paddleflow, CPU": (0.15, [sys.executable, "-c", "import paddleflow"]),
        "the same and its Client, CPU": (0.15, [sys.executable, "-c", "from paddleflow import Client"]),
    }
    for what, (target, argv) in commands.items():
        yield Figure(
            what=what,
            value=startup.cpu_seconds(argv),
            unit="s",
            target=target,
            peer="python -c pass, the floor",
            peer_value=floor,
        )


def measure_slurm(sizes: Sizes, slots: int) -> Peer:
    try:
        with slurm.private_slurm(sizes.wide_slots) as one:
            wide = Throughput(
                one_by_one=sizes.wide_jobs / one.run_one_by_one(sizes.wide_jobs, SUBMITTERS),
                array=sizes.wide_jobs / one.run_array(sizes.wide_jobs),
            )
            submits = sizes.held / one.submit_held(sizes.held, SUBMITTERS)
            ready_s, rss_mib = one.ready_s, one.ready_rss_bytes / MIB
        with slurm.private_slurm(slots) as one:
            narrow = Throughput(
                one_by_one=sizes.narrow_jobs / one.run_one_by_one(sizes.narrow_jobs, SUBMITTERS),
                array=sizes.narrow_jobs / one.run_array(sizes.narrow_jobs),
            )
    except Missing as missing:
        say(f"Slurm is left out: {missing}")
        return Peer(absent=str(missing))
    return Peer(ready_s=ready_s, rss_mib=rss_mib, submits=submits, wide=wide, narrow=narrow)


def backlog_figures(state_dir: Path, sizes: Sizes, peer: Peer) -> Iterator[Figure]:
    """Start, memory and submits. One job holds the only CPU, so every other waits in the queue."""
    with serving(state_dir, slots=1) as server:
        blocker = server.submit("sleep 3600")
        wait_until(lambda: server.status(blocker) == "running", what="the first job to run", timeout_s=30)
        outcome = load.measure(submit_plan(server, sizes.submits))
        server.stop_job(blocker)
    name = peer.absent or "Slurm: munged, slurmctld, slurmd"
    yield Figure(
        what="server start to /readyz", value=server.ready_s, unit="s", target=2, peer=name, peer_value=peer.ready_s
    )
    yield Figure(
        what="memory when ready",
        value=server.ready_rss_bytes / MIB,
        unit="MiB",
        target=150,
        peer=name,
        peer_value=peer.rss_mib,
    )
    yield Figure(
        what="job submits over HTTP",
        value=outcome.rate,
        unit="/s",
        target=300,
        more_is_better=True,
        peer=peer.absent or f"Slurm: sbatch --hold, {SUBMITTERS} at a time",
        peer_value=peer.submits,
    )
    yield from latencies("submit", outcome, 50)


def submit_plan(server: Server, count: int) -> load.Plan:
    return load.Plan(
        port=server.port,
        method="POST",
        paths=[f"{API}/job/single"],
        count=count,
        headers=server.headers,
        body=json.dumps(JOB),
    )


def read_figures(state_dir: Path, sizes: Sizes) -> Iterator[Figure]:
    began = time.perf_counter()
    ids = fill(state_dir, sizes.stored)
    say(f"filled in {time.perf_counter() - began:.0f} s")
    stored = f"{sizes.stored:,} jobs stored"
    with serving(state_dir, slots=1) as server:
        one = load.measure(get_plan(server, [f"/job/{job_id}" for job_id in spread(ids, sizes.reads)], sizes.reads))
        newest = load.measure(get_plan(server, ["/job?maxKeys=50"], sizes.lists))
        failed = load.measure(get_plan(server, ["/job?maxKeys=50&status=failed"], sizes.lists))
    yield Figure(what=f"GET one job, {stored}", value=one.rate, unit="/s", target=1000, more_is_better=True)
    yield from latencies("GET one job", one, 50)
    yield Figure(what="list, first 50", value=newest.rate, unit="/s")
    yield from latencies("list, first 50", newest, 50)
    yield Figure(what="list, 50 failed", value=failed.rate, unit="/s")
    yield from latencies("list, 50 failed", failed, 50)


def spread(ids: list[str], count: int) -> list[str]:
    """Ids from all over the table, not neighbours."""
    return [ids[(number * 7919) % len(ids)] for number in range(min(count, len(ids)))]


def get_plan(server: Server, paths: list[str], count: int) -> load.Plan:
    return load.Plan(
        port=server.port, method="GET", paths=[API + path for path in paths], count=count, headers=server.headers
    )


def latencies(what: str, outcome: load.Outcome, target_ms: float) -> Iterator[Figure]:
    say(f"{what}: the load generator used {outcome.generator_cpu_share:.0%} of a core")
    yield Figure(what=f"{what}, median, 8 clients", value=outcome.p50_ms, unit="ms")
    yield Figure(what=f"{what}, 99th percentile", value=outcome.p99_ms, unit="ms", target=target_ms)


def run_jobs(state_dir: Path, count: int, slots: int) -> float:
    """Jobs a second from the first submit to the last end, over HTTP with eight clients."""
    with serving(state_dir, slots=slots) as server:
        began = time.perf_counter()
        load.measure(submit_plan(server, count))
        wait_until(lambda: not server.any_live(), what=f"{count} jobs", timeout_s=60 + count, every_s=0.1)
        seconds = time.perf_counter() - began
        succeeded = server.count("succeeded")
        if succeeded != count:
            raise SystemExit(f"{succeeded} of {count} jobs succeeded")
    return count / seconds


def job_figures(sizes: Sizes, slots: int, peer: Peer, wide: float, narrow: float) -> Iterator[Figure]:
    for count, room, ours, theirs in (
        (sizes.wide_jobs, sizes.wide_slots, wide, peer.wide),
        (sizes.narrow_jobs, slots, narrow, peer.narrow),
    ):
        yield Figure(
            what=f"{count:,} jobs `true`, submit to last end, {room} at a time",
            value=ours,
            unit="jobs/s",
            target=theirs.one_by_one if theirs else None,
            more_is_better=True,
            peer=peer.absent or f"Slurm: {SUBMITTERS} sbatch at a time",
            peer_value=theirs.one_by_one if theirs else None,
        )
        yield Figure(
            what="the same, beside one job array",
            value=ours,
            unit="jobs/s",
            target=theirs.array if theirs else None,
            more_is_better=True,
            peer=peer.absent or f"Slurm: sbatch --array=1-{count}",
            peer_value=theirs.array if theirs else None,
        )


if __name__ == "__main__":
    sys.exit(main())
