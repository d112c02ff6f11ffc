"""``python -m bench.storage`` measures, prints two tables and keeps them in bench/results. A missed target is not an
error; wrong bytes are."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.figures import RESULTS, Figure, machine, table
from bench.processes import BenchError, Missing
from bench.storage import clients, kills, results, servers
from bench.storage.content import WrongBytes
from bench.storage.results import Measured, Sample
from bench.storage.stage import FULL, NATIVE, OURS, RCLONE, RCLONE_READS, SHORT, DataSet, Kind, Side, Sizes, Stage
from bench.storage.workloads import CLOSED, Workload, workloads

BUCKET = "bench"
QUIET_LOAD = 0.5
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def main() -> int:
    arguments = parse(sys.argv[1:])
    sizes = SHORT if arguments.short else FULL
    with_kills = not arguments.only or "kill" in arguments.only
    chosen = [one for one in workloads() if not arguments.only or any(part in one.name for part in arguments.only)]
    if not chosen and not with_kills:
        names = ", ".join([*(one.name for one in workloads()), "kill"])
        print(f"no workload has {' or '.join(arguments.only)} in its name; there are {names}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # whoever stops us finds nothing mounted afterwards
    load_before = os.getloadavg()[0]
    measured: list[Measured] = []
    killed = Killed()
    with stage(sizes) as ready:
        told = header(ready, arguments.short, load_before)
        say(told)
        for workload in chosen:
            say(f"{workload.name}: {workload.what}")
            measured += measure(ready, workload)
        if with_kills:
            killed = kill(ready)
    show(measured, killed, told)
    keep(measured, killed, told, [RESULTS / "storage.json", *([arguments.json] if arguments.json else [])])
    return 1 if killed.wrong or any(one.wrong for one in measured) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    figures: Sequence[Figure] = ()
    failure: str = ""
    """Why there are no figures."""
    wrong: bool = False


def kill(ready: Stage) -> Killed:
    say("kill -9 of the daemon")
    try:
        return Killed(figures=list(kills.figures(ready, ready.sizes.kills)))
    except (BenchError, WrongBytes, OSError) as error:
        say(f"  FAILED: {error}")
        return Killed(failure=f"kill -9 of the daemon: {error}", wrong=isinstance(error, WrongBytes))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.storage",
        description="Our mount beside the native filesystem and rclone's, in one run. Works in the directory for "
        "temporary files (set TMPDIR to choose another) and needs about 12 GiB there, 3 GiB with --short.",
    )
    parser.add_argument("--short", action="store_true", help="small numbers: shows that it works, proves nothing")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="workloads with this in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there too")
    return parser.parse_args(argv)


@contextmanager
def stage(sizes: Sizes) -> Iterator[Stage]:
    """The data, the S3 server, the client: all gone at the end, mounts first."""
    with tempfile.TemporaryDirectory(prefix="bench-storage-") as name, ExitStack() as closing:
        folder = Path(name).resolve()
        for part in ("native", "logs", "mounts", f"s3/{BUCKET}"):
            (folder / part).mkdir(parents=True)
        say("making the data")
        data = DataSet(sizes)
        data.make(folder / "native")
        data.make(folder / "s3" / BUCKET)
        s3 = closing.enter_context(servers.serving_s3(folder / "s3", BUCKET, folder / "logs" / "s3.log"))
        yield Stage(folder, s3, data, clients.compiled(folder), closing)


def header(ready: Stage, short: bool, load_before: float) -> str:
    lines = [
        f"{machine()}; native is {servers.filesystem_of(ready.folder)}; {servers.rclone_version()}",
        f"rclone mount --vfs-cache-mode full {' '.join(RCLONE_READS)}; S3 is rclone serve s3 on loopback",
        f"client in {ready.client.name}; {ready.sizes}",
    ]
    if short:
        lines.append("short run, small numbers: it shows that everything works and proves nothing")
    if load_before > QUIET_LOAD:
        lines.append(f"the machine was busy with other work (load {load_before:.1f}): these figures say little")
    if os.geteuid() != 0:
        lines.append("not root: workloads with cold pages are left out, since only root can drop the kernel's caches")
    return "\n".join(lines)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def measure(ready: Stage, workload: Workload) -> list[Measured]:
    """A workload on all its sides, round by round. A side that fails is out; the others go on."""
    if workload.cold and os.geteuid() != 0:
        return []
    found: dict[str, Measured] = {}
    failures: dict[str, str] = {}
    wrong = False
    for number in range(-1, ready.sizes.rounds):  # the round before the first is not counted
        order = [name for name in workload.sides if name not in failures]
        random.shuffle(order)
        for name in order:
            try:
                with opened(ready, workload, name) as side:
                    samples = timed(ready, workload, side, f"{workload.name}-{name.split(',')[0]}-{number}")
                    if number in (-1, ready.sizes.rounds - 1):
                        workload.check(ready, side)
            except (BenchError, WrongBytes, OSError) as error:
                failures[name] = f"{'left out' if isinstance(error, Missing) else 'FAILED'}: {error}"
                wrong |= isinstance(error, WrongBytes)
                say(f"  {name}: {failures[name]}")
                continue
            for label, sample in samples.items() if number >= 0 else ():
                found.setdefault(label, empty(workload, label)).samples.setdefault(name, []).append(sample)
    for one in found.values() or [found.setdefault("", empty(workload, ""))]:
        one.failures, one.wrong = failures, wrong
        one.samples = {name: samples for name, samples in one.samples.items() if name not in failures}
    return list(found.values())


def empty(workload: Workload, label: str) -> Measured:
    return Measured(
        name=f"{workload.name} {label}".strip(),
        what=f"{workload.what} {label}".strip(),
        unit=workload.unit,
        native_aims=dict(workload.native_aims),
        peer_aims=dict(workload.peer_aims),
    )


def opened(ready: Stage, workload: Workload, name: str) -> AbstractContextManager[Side]:
    if workload.kind is Kind.FRESH:
        return ready.fresh(name)
    return nullcontext(ready.side(name, workload.kind))


def timed(ready: Stage, workload: Workload, side: Side, run_name: str) -> dict[str, Sample]:
    if workload.cold:
        os.sync()
        DROP_CACHES.write_text("3")
    if side.daemons:
        side.daemons.forget_peak()
    cpu = side.daemons.cpu_seconds() if side.daemons else 0.0
    outcomes = workload.run(ready, side, run_name)
    cpu_s = side.daemons.cpu_seconds() - cpu if side.daemons else 0.0
    peak = side.daemons.peak_bytes() if side.daemons else 0
    return {
        label: Sample(rate=took.operations / took.seconds, cpu_us=1e6 * cpu_s / took.operations, peak_bytes=peak)
        for label, took in outcomes.items()
    }


def show(measured: Sequence[Measured], killed: Killed, told: str) -> None:
    ours = list(OURS)
    print(f"\n{told}\n")
    print("Ratios are medians of the rounds' own ratios, with their quartiles; n rounds, sides in random order.\n")
    print(results.speed_table(measured, ours, NATIVE, RCLONE))
    for sentence in results.failures(measured):
        print(f"\n{sentence}")
    print("\nThe daemons of a mount: processor time for one operation, and the most memory all its processes held.\n")
    print(results.cost_table([one for one in measured if not one.name.endswith(CLOSED)], ours, RCLONE))
    if killed.figures or killed.failure:
        print(f"\n{killed.failure or table(killed.figures)}")


def keep(measured: Sequence[Measured], killed: Killed, told: str, paths: Sequence[Path]) -> None:
    RESULTS.mkdir(exist_ok=True)
    document = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "about": told.splitlines(),
        "workloads": [asdict(one) for one in measured],
        "kills": [asdict(one) for one in killed.figures],
    }
    for path in paths:
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        print(f"\nkept in {os.path.relpath(path)}")


if __name__ == "__main__":
    sys.exit(main())
