"""Pipelines: what a step costs, wide and long runs, many runs at once, and other engines on the same no-op steps.

Our server is started and asked as in the rest of the bench; a step is a process ``true`` that goes the whole way:
stored, queued, placed, started, ended. The peers run in environments of their own (``pipeline_peers.py``); one that is
not installed is named in the table and left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import load
from bench.figures import Figure, machine, table
from bench.processes import BenchError, Missing, wait_until
from bench.server import API, Server, serving
from paddleflow.documents import load as load_document
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.source import Limits, Overrides

ROOT = Path(__file__).resolve().parents[1]
PEERS = os.environ.get("PADDLEFLOW_PEERS_PYTHON") or str(ROOT / ".venv-peers" / "bin" / "python")
AIRFLOW = os.environ.get("PADDLEFLOW_AIRFLOW_PYTHON") or str(ROOT / ".venv-airflow" / "bin" / "python")
MIB = 1024 * 1024
TICKS = os.sysconf("SC_CLK_TCK")
ENDED = ("succeeded", "failed", "terminated")
PEER_PATIENCE_S = 600

PEER_NAMES = {
    "luigi": "Luigi, a process a step, nothing stored",
    "luigid": "Luigi with luigid, a process a step",
    "airflow": "Airflow, dag.test(), a process a step",
    "prefect": "Prefect, in process",
    "dagster": "Dagster, in process",
}
PROCESS_A_STEP = ("luigi", "luigid", "airflow")
SERVICES = ("luigid", "airflow")
"""Those that keep what has happened outside of the process that asked for it, as we do. Both ratios are shown: Luigi's
scheduler inside the process is far cheaper, and forgets everything when it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    chain: int
    fan: int
    many: int
    runs: int
    calls: int
    nodes: int
    peers: tuple[str, ...]
    slots: int = 64
    """Steps at a time in the wide runs."""


FULL = Sizes(chain=100, fan=1000, many=10_000, runs=200, calls=3000, nodes=1000, peers=tuple(PEER_NAMES))
SHORT = Sizes(chain=20, fan=100, many=300, runs=20, calls=300, nodes=1000, peers=("luigi",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One run from submit to end."""

    seconds: float
    engine_cpu_s: float
    """Of the server's own process; the processes of the steps are not in it."""
    rss_mib: float
    """What the server's own process held most, above what it held before."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    say("pipelines: compiling")
    yield Figure(
        what=f"parse, check, compile a file of {sizes.nodes:,} nodes, CPU",
        value=compile_seconds(sizes.nodes),
        unit="s",
        target=0.5,
    )
    with tempfile.TemporaryDirectory(prefix="bench-pipelines-") as name:
        folder = Path(name)
        yield from step_figures(folder / "chain", sizes)
        yield from fan_figures(folder / "fan", sizes)
        yield from many_figures(folder / "many", sizes)
        yield from crowd_figures(folder / "crowd", sizes)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


# Compiling.


def compile_seconds(nodes: int) -> float:
    """Processor time of this process, best of three. The text has what large files have: references between steps."""
    text = "name: large\nentry_points:\n" + "".join(
        f"  step-{number}:\n"
        + (f"    deps: step-{number - 1}\n" if number else "")
        + "    parameters:\n"
        + f'      value: "{{{{step-{number - 1}.value}}}}"\n' * bool(number)
        + f"      value: {number}\n" * (not number)
        + '    command: "echo {{value}} {{PF_RUN_ID}}"\n    env: {LEVEL: "{{value}}"}\n'
        for number in range(nodes)
    )
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        document = load_document(text)
        plan = compile_plan(parse(document.value, document.lines), Overrides(), Limits())
        best = min(best, time.process_time() - began)
        if len(plan.nodes) != nodes:
            raise BenchError(f"{len(plan.nodes)} of {nodes} nodes were compiled")
    return best


# One step after the other.


def step_figures(state_dir: Path, sizes: Sizes) -> Iterator[Figure]:
    say(f"pipelines: {sizes.chain} steps one after the other")
    with serving(state_dir, slots=4) as server:
        follow(server, chain(3))  # the first run pays for what is loaded once
        course = follow(server, chain(sizes.chain))
    ours = 1000 * course.seconds / sizes.chain
    yield Figure(what="no-op step, its own process, one after the other", value=ours, unit="ms", target=60)
    peers = {name: peer(name, "chain", sizes.chain) for name in sizes.peers}
    for value, label in peers.values():
        yield Figure(what="the same", value=ours, unit="ms", peer=label, peer_value=value)
    for what, names in (("any", PROCESS_A_STEP), ("one whose scheduler is a service", SERVICES)):
        known = [value for name in names if (value := peers.get(name, (None, ""))[0]) is not None]
        if known:
            yield Figure(
                what=f"the same, best process-per-step peer = 1, {what}", value=ours / min(known), unit="", target=0.5
            )
    yield Figure(what="the same, the server's CPU", value=1000 * course.engine_cpu_s / sizes.chain, unit="ms")


def peer(name: str, shape: str, count: int) -> tuple[float | None, str]:
    """Milliseconds a step, and what to call it; None when it is not installed."""
    python = AIRFLOW if name == "airflow" else PEERS
    say(f"pipelines: {PEER_NAMES[name]}")
    try:
        told = _ask_peer(python, name, shape, count)
    except Missing as missing:
        return None, f"{PEER_NAMES[name]}: {missing}"
    return 1000 * told["seconds"] / count, f"{PEER_NAMES[name]}, {told['version']}"


def _ask_peer(python: str, name: str, shape: str, count: int) -> dict[str, float]:
    if not Path(python).exists():
        raise Missing("not installed")
    script = str(Path(__file__).with_name("pipeline_peers.py"))
    with tempfile.TemporaryDirectory(prefix="bench-peer-") as folder:
        done = subprocess.run(
            [python, script, name, shape, str(count)],
            cwd=folder,
            env={**os.environ, "TMPDIR": folder, "HOME": folder},
            capture_output=True,
            text=True,
            check=False,
            timeout=PEER_PATIENCE_S,
        )
    if done.returncode:
        if "PackageNotFoundError" in done.stderr or "ModuleNotFoundError" in done.stderr:
            raise Missing("not installed")
        say(f"{name} failed: {done.stderr[-1500:]}")
        raise Missing("failed")
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


# All at once, and very many.


def fan_figures(state_dir: Path, sizes: Sizes) -> Iterator[Figure]:
    say(f"pipelines: a loop over {sizes.fan:,} items")
    with serving(state_dir, slots=sizes.slots) as server:
        follow(server, chain(3))
        course = follow(server, fan(sizes.fan, sizes.slots))
    yield Figure(
        what=f"{sizes.fan:,}-way fan-out, engine time a step (the server's CPU)",
        value=1000 * course.engine_cpu_s / sizes.fan,
        unit="ms",
        target=10,
    )
    ours = 1000 * course.seconds / sizes.fan
    yield Figure(what=f"the same, wall clock a step, {sizes.slots} at a time", value=ours, unit="ms")
    for name in sizes.peers:
        if name != "airflow":  # its test mode runs one at a time
            value, label = peer(name, "fan", sizes.fan)
            yield Figure(what="the same", value=ours, unit="ms", peer=label, peer_value=value)


def many_figures(state_dir: Path, sizes: Sizes) -> Iterator[Figure]:
    say(f"pipelines: {sizes.many:,} steps in one run")
    with serving(state_dir, slots=sizes.slots) as server:
        small = follow(server, fan(sizes.many // 10, sizes.slots))
        large = follow(server, fan(sizes.many, sizes.slots))
    log = (state_dir / "bench-server.log").read_text(errors="replace")
    locks = log.count("database is locked")
    yield Figure(what=f"{sizes.many:,} steps in one run, steps a second", value=sizes.many / large.seconds, unit="/s")
    yield Figure(what="the same, lock errors", value=locks, unit="", target=0)
    yield Figure(
        what="the same, engine time a step (the server's CPU)", value=1000 * large.engine_cpu_s / sizes.many, unit="ms"
    )
    yield Figure(
        what="the same, memory above an idle server",
        value=large.rss_mib,
        unit="MiB",
        peer=f"{small.rss_mib:.3g} MiB for a tenth of the steps, in the run before",
    )


# Many runs at once.


def crowd_figures(state_dir: Path, sizes: Sizes) -> Iterator[Figure]:
    say(f"pipelines: {sizes.runs} runs at once")
    text = chain(6, command="sleep 5")
    with serving(state_dir, slots=sizes.runs) as server:
        ids = [submit(server, text) for _ in range(sizes.runs)]
        wait_until(
            lambda: running_steps(server) >= sizes.runs * 9 // 10,
            what="a step of nearly every run to be running",
            timeout_s=120,
            every_s=0.2,
        )
        outcome = load.measure(
            load.Plan(
                port=server.port,
                method="GET",
                paths=[f"{API}/run/{run_id}" for run_id in ids] + [f"{API}/run?maxKeys=50"] * (sizes.runs // 10),
                count=sizes.calls,
                headers=server.headers,
            )
        )
        active = sizes.runs - count_ended(server)
        wait_until(lambda: count_ended(server) == sizes.runs, what="the runs to end", timeout_s=600, every_s=1)
        succeeded = len(server.ask("GET", "/run?maxKeys=1000&statusFilter=succeeded")["runList"])
    if succeeded != sizes.runs:
        raise BenchError(f"{succeeded} of {sizes.runs} runs succeeded")
    say(f"{active} of {sizes.runs} runs were still active at the end; {outcome.rate:.0f} calls a second")
    yield Figure(what=f"GET a run or list runs, {sizes.runs} runs active, median", value=outcome.p50_ms, unit="ms")
    yield Figure(
        what="the same, 99th percentile",
        value=outcome.p99_ms,
        unit="ms",
        target=100,
        peer=f"{active} of {sizes.runs} still active after the last call",
    )


# Runs of our server.


def running_steps(server: Server) -> int:
    return len(server.ask("GET", "/job?maxKeys=1000&status=running")["jobList"])


def chain(count: int, command: str = "true") -> str:
    steps = "".join(
        f"  step-{number}: {{command: {command!r}{f', deps: step-{number - 1}' if number else ''}}}\n"
        for number in range(count)
    )
    return f"name: chain\nentry_points:\n{steps}"


def fan(count: int, parallelism: int) -> str:
    items = ", ".join(map(str, range(count)))
    return (
        f"name: fan\nparallelism: {parallelism}\nentry_points:\n  each: {{command: 'true', loop_argument: [{items}]}}\n"
    )


def submit(server: Server, text: str) -> str:
    body = {"runYamlRaw": base64.b64encode(text.encode()).decode()}
    return str(server.ask("POST", "/run", body)["runID"])


def status(server: Server, run_id: str) -> str:
    """From the list, where a run is one line: the run itself comes with all its steps."""
    (run,) = server.ask("GET", f"/run?runFilter={run_id}")["runList"]
    return str(run["status"])


def count_ended(server: Server) -> int:
    """Runs that have ended; the bench has fewer than one page of them."""
    return len(server.ask("GET", f"/run?maxKeys=1000&statusFilter={','.join(ENDED)}")["runList"])


def follow(server: Server, text: str) -> Course:
    """One run, watched from outside so rarely that watching costs it nothing."""
    cpu, rss = cpu_seconds(server.pid), own_rss(server.pid)
    highest = rss
    began = time.perf_counter()
    run_id = submit(server, text)
    while (now := status(server, run_id)) not in ENDED:
        highest = max(highest, own_rss(server.pid))
        time.sleep(min(0.25, 0.02 + (time.perf_counter() - began) / 100))
    seconds = time.perf_counter() - began
    if now != "succeeded":
        raise BenchError(f"a run of the bench ended as {now}")
    return Course(
        seconds=seconds,
        engine_cpu_s=cpu_seconds(server.pid) - cpu,
        rss_mib=(max(highest, own_rss(server.pid)) - rss) / MIB,
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def own_rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines", description=__doc__)
    parser.add_argument("--short", action="store_true", help="small numbers: shows that it works, proves nothing")
    arguments = parser.parse_args()
    load_before = os.getloadavg()[0]
    found = list(figures(SHORT if arguments.short else FULL))
    print(f"\n{machine()}, load before {load_before:.1f}, after {os.getloadavg()[0]:.1f}\n\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
