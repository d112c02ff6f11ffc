"""``paddleflow simulate``: replay a trace of jobs against a described cluster, in this process and without a server.

With ``--server`` a server is asked for the jobs it has run and for what it runs them on; the replay stays here. What is
read is only turned into lines and mappings; what they mean, and whether they are sound, is the simulation's business.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import FORMATS, show, to_json
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import DEFAULT_CLUSTER
from paddleflow.domain.queries import REPLAY_POLICIES

if TYPE_CHECKING:
    from paddleflow.simulation.cluster import Capacity
    from paddleflow.simulation.metrics import Metrics
    from paddleflow.simulation.simulate import Replay
    from paddleflow.simulation.trace import TraceJob
    from paddleflow.simulation.workload import Workload

_CHART_SLICES = 100
_WIDEST_CHART = 100


@click.command()
@click.argument("trace", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--server", is_flag=True, help="Instead of TRACE: the jobs the server has run, on its nodes and queues.")
@click.option("--since", type=click.IntRange(min=0), help="With --server: jobs submitted at this Unix time or later.")
@click.option("--until", type=click.IntRange(min=0), help="With --server: jobs submitted before this Unix time.")
@click.option("--clustername", metavar="NAME", help="With --server: which cluster.  [default: default-cluster]")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --server: only write its jobs to this file, as a TRACE.",
)
@click.option(
    "--cluster", "cluster_file", type=click.Path(dir_okay=False, path_type=Path), help="Nodes and queues, YAML or JSON."
)
@click.option("--gpus", type=click.IntRange(min=1), help="Instead of --cluster: a cluster of so many GPUs.")
@click.option("--gpus-per-node", type=click.IntRange(min=1), default=8, show_default=True, help="With --gpus.")
@click.option("--load", type=float, help="Move submissions so that they demand this part of the cluster, e.g. 0.9.")
@click.option(
    "--policy",
    type=click.Choice([*REPLAY_POLICIES, "all"]),
    default="paddleflow",
    show_default=True,
    help="Who decides: this platform, or one of the others for comparison.",
)
@click.option(
    "--queues",
    type=click.Choice(["tenants", "one"]),
    help="A queue for each tenant of the trace, or one for all.  [default: those of --cluster, else one]",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N jobs.")
@click.option("--sort", is_flag=True, help="Take a trace whose rows are not in order of submission.")
@click.option("-o", "--output", type=click.Choice(FORMATS), help="How to show the answer.")
@click.pass_obj
def simulate(
    invocation: Invocation,
    *,
    trace: Path | None,
    server: bool,
    since: int | None,
    until: int | None,
    clustername: str | None,
    save: Path | None,
    cluster_file: Path | None,
    gpus: int | None,
    gpus_per_node: int,
    load: float | None,
    policy: str,
    queues: str | None,
    limit: int | None,
    sort: bool,
    output: str | None,
) -> None:
    """replay a TRACE of jobs and show what the scheduler makes of it

    TRACE is a CSV file with the columns submit,duration,gpus; the traces of Philly and of openb are known as well.

    \b
    paddleflow simulate jobs.csv --gpus 64
    paddleflow simulate philly.csv --sort --gpus 2000 --queues tenants --load 0.9 --policy all
    paddleflow simulate jobs.csv --cluster cluster.yaml -o json
    paddleflow simulate --server --policy all
    """
    from paddleflow.simulation.trace import read_trace
    from paddleflow.simulation.workload import prepare

    _check_source(trace, server, {"--since": since, "--until": until, "--clustername": clustername, "--save": save})
    is_described = cluster_file is not None or gpus is not None
    if (cluster_file is not None and gpus is not None) or not (server or is_described):
        raise click.UsageError("describe the cluster: either --cluster FILE or --gpus N")
    cluster = clustername or DEFAULT_CLUSTER
    lines = _lines(trace) if trace is not None else _past(invocation, since, until, limit, cluster)
    if save is not None:
        _save(save, lines)
        return
    jobs = read_trace(lines, sort=sort, limit=limit)
    if is_described:
        capacity = _capacity(cluster_file, gpus, gpus_per_node)
    else:
        from paddleflow.cli.commands.simulate_server import server_capacity

        capacity = server_capacity(invocation.client, cluster, jobs)
    workload = prepare(jobs, _with_queues(capacity, queues, jobs), load=load)
    names = REPLAY_POLICIES if policy == "all" else (policy,)
    _report(output or invocation.output, [_replay(name, workload) for name in names])


def _check_source(trace: Path | None, server: bool, only_with_server: dict[str, object]) -> None:
    if (trace is None) != server:
        raise click.UsageError("say which jobs: either a TRACE, or --server for those the server has run")
    for name, value in only_with_server.items():
        if value is not None and not server:
            raise click.UsageError(f"{name} is of use with --server only")


def _past(
    invocation: Invocation, since: int | None, until: int | None, limit: int | None, cluster: str
) -> Iterable[str]:
    _, text = invocation.client.trace(since, until, limit, cluster)
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        raise Invalid(f"no job of cluster[{cluster}] has run and ended in that time; there is nothing to replay")
    return lines


def _save(path: Path, lines: Iterable[str]) -> None:
    text = "".join(lines)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"the trace cannot be written: {error}") from error
    click.echo(f"{text.count(chr(10)) - 1} jobs written to {path}", err=True)


def _capacity(cluster_file: Path | None, gpus: int | None, gpus_per_node: int) -> Capacity:
    from paddleflow.simulation.cluster import Capacity, like_nodes, one_queue, parse_capacity

    if cluster_file is not None:
        return parse_capacity(_description(cluster_file))
    return Capacity(nodes=like_nodes(gpus or 0, gpus_per_node), queues=one_queue())


def _with_queues(capacity: Capacity, queues: str | None, jobs: tuple[TraceJob, ...]) -> Capacity:
    from dataclasses import replace

    from paddleflow.simulation.cluster import one_queue, tenant_queues

    if queues == "tenants":
        return replace(capacity, queues=tenant_queues(jobs, capacity.nodes))
    return replace(capacity, queues=one_queue()) if queues == "one" else capacity


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except OSError as error:
        raise Invalid(f"the trace cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"the trace {path} is not a text file in UTF-8: {error}") from error


def _description(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(f"the description of the cluster cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"the description of the cluster {path} is not a text file in UTF-8: {error}") from error
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise Invalid(f"{path} is not JSON: {error}") from error
    from paddleflow.documents import load

    try:
        return load(text).value
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}") from error


def _replay(name: str, workload: Workload) -> Replay:
    from paddleflow.simulation.entrants import policy_named
    from paddleflow.simulation.simulate import simulate as replay

    with _progress(name, len(workload.submissions)) as told:
        return replay(workload, policy_named(name, workload.capacity), timer=time.thread_time, progress=told)


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on standard error while it runs, if somebody looks at it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(name, total=total)
        yield lambda ended: progress.update(bar, completed=ended)


_HEADERS = [
    "policy",
    "jobs",
    "mean\ncompletion",
    "median\ncompletion",
    "p99\ncompletion",
    "mean\ndelay",
    "p99\ndelay",
    "makespan",
    "utili-\nsation",
    "share\ndeviation",
    "evicted",
    "resized",
    "GPU hours\nlost",
    "decisions",
    "ms each",
]


def _row(metrics: Metrics) -> list[object]:
    from paddleflow.simulation.draw import spell_time

    each_ms = 1000 * metrics.decision_s / metrics.decisions if metrics.decisions else 0.0
    return [
        metrics.policy,
        metrics.jobs,
        spell_time(metrics.mean_completion_s),
        spell_time(metrics.median_completion_s),
        spell_time(metrics.p99_completion_s),
        spell_time(metrics.mean_delay_s),
        spell_time(metrics.p99_delay_s),
        spell_time(metrics.makespan_s),
        f"{metrics.utilisation:.1%}",
        f"{metrics.share_deviation:.1%}",
        metrics.evictions,
        metrics.resizes,
        f"{metrics.lost_gpu_s / 3600:.0f}",
        metrics.decisions,
        f"{each_ms:.2f}",
    ]


def _report(output: str, replays: list[Replay]) -> None:
    from paddleflow.simulation.draw import draw, slices
    from paddleflow.simulation.metrics import measure

    measured = [measure(replay) for replay in replays]
    end = max(metrics.makespan_s for metrics in measured)
    if output == "json":
        answer = [
            {
                **asdict(metrics),
                "share_deviation_of_queue": replay.share_deviation,
                "utilisation_over_time": [round(part, 4) for part in slices(replay.usage, end, _CHART_SLICES)],
            }
            for metrics, replay in zip(measured, replays, strict=True)
        ]
        click.echo(to_json(answer))
        return
    show(output, _HEADERS, [_row(metrics) for metrics in measured])
    first = measured[0]
    if first.refused:
        click.echo(f"{first.refused} jobs can never fit this cluster and took no part", err=True)
    for metrics in measured:
        if metrics.unfinished:
            click.echo(f"{metrics.policy}: {metrics.unfinished} jobs never got the room to finish", err=True)
    if output == "table":
        width = min(_WIDEST_CHART, shutil.get_terminal_size().columns)
        plain = "utf" not in (getattr(sys.stdout, "encoding", None) or "ascii").lower()
        for metrics, replay in zip(measured, replays, strict=True):
            click.echo(f"\nutilisation over time, {metrics.policy}")
            click.echo("\n".join(draw(replay.usage, end, width=width, ascii_only=plain)))
