"""``paddleflow queue what-if``: what the scheduler would do with other queues, other nodes or one more job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_facts, to_json

if TYPE_CHECKING:
    from paddleflow.sdk.queues import WhatIfInfo

_BOUNDS = {"max": "maxResources", "min": "minResources"}
_AMOUNTS = {"cpu": "cpu", "mem": "mem", "memory": "mem"}


@click.command("what-if")
@click.option(
    "--queue", "queues", multiple=True, metavar="NAME:K=V,...", help="Change a queue: maxcpu, minmem, max.GPU, weight."
)
@click.option(
    "--add-nodes",
    "nodes",
    multiple=True,
    metavar="N:K=V,...",
    help="Add N nodes: cpu, mem, other resources, label.K, cluster.",
)
@click.option("--remove-node", "without", multiple=True, metavar="NAME", help="Take a node away; may be repeated.")
@click.option(
    "--job",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Submit this job: a JSON file in the shape of the request body.",
)
@click.pass_obj
def what_if(
    invocation: Invocation,
    *,
    queues: tuple[str, ...],
    nodes: tuple[str, ...],
    without: tuple[str, ...],
    job: Path | None,
) -> None:
    """say what would start, shrink or be evicted if things were otherwise

    \b
    paddleflow queue what-if --queue vision:maxcpu=64,max.nvidia.com/gpu=8,weight=2
    paddleflow queue what-if --add-nodes 2:cpu=64,mem=256Gi,nvidia.com/gpu=8 --job train.json
    """
    _, answer = invocation.client.what_if(
        [queue_change(item) for item in queues], [new_nodes(item) for item in nodes], without, _job_in(job)
    )
    if invocation.output == "json":
        click.echo(to_json(_facts(answer)))
        return
    click.echo(answer.sentence)
    if answer.job is not None:
        click.echo(f"the job: {answer.job['sentence']}")
    for name, rows in (
        ("start", answer.start),
        ("grow", answer.grow),
        ("shrink", answer.shrink),
        ("evict", answer.evict),
    ):
        if rows:
            headers = list(rows[0])
            click.echo(f"\n{name}:")
            show_facts(headers, [[row.get(header) for header in headers] for row in rows])


def queue_change(item: str) -> dict[str, Any]:
    """``vision:maxcpu=64,max.nvidia.com/gpu=8,weight=2`` in the shape of the request."""
    name, pairs = _named_pairs("--queue", item, "vision:maxcpu=64,weight=2")
    change: dict[str, Any] = {"name": name}
    for key, value in pairs.items():
        bound, rest = _BOUNDS.get(key[:3]), key[3:]
        if key == "weight" and value.isdecimal():
            change["weight"] = int(value)
        elif bound is not None and rest.removeprefix("."):
            _put_amount(change.setdefault(bound, {}), rest.removeprefix("."), value)
        else:
            raise click.BadParameter(
                f"{key}={value} should be maxcpu, maxmem, mincpu, minmem, max.RESOURCE, min.RESOURCE or weight=NUMBER",
                param_hint="--queue",
            )
    return change


def new_nodes(item: str) -> dict[str, Any]:
    """``2:cpu=64,mem=256Gi,nvidia.com/gpu=8`` in the shape of the request."""
    count, pairs = _named_pairs("--add-nodes", item, "2:cpu=64,mem=256Gi")
    if not count.isdecimal():
        raise click.BadParameter(f"{count!r} should be how many nodes, as in 2:cpu=64", param_hint="--add-nodes")
    nodes: dict[str, Any] = {"count": int(count)}
    for key, value in pairs.items():
        if key.startswith("label."):
            nodes.setdefault("labels", {})[key.removeprefix("label.")] = value
        elif key == "cluster":
            nodes["clusterName"] = value
        else:
            _put_amount(nodes, key, value)
    return nodes


def _put_amount(amounts: dict[str, Any], resource: str, value: str) -> None:
    if resource in _AMOUNTS:
        amounts[_AMOUNTS[resource]] = value
    else:
        amounts.setdefault("scalarResources", {})[resource] = value


def _named_pairs(option: str, item: str, example: str) -> tuple[str, Mapping[str, str]]:
    name, colon, rest = item.partition(":")
    pairs: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise click.BadParameter(f"{part!r} should be KEY=VALUE, as in {example}", param_hint=option)
        pairs[key.strip()] = value.strip()
    if not (name and colon and pairs):
        raise click.BadParameter(f"{item!r} should look like {example}", param_hint=option)
    return name, pairs


def _job_in(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        job = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.BadParameter(f"{path} is not JSON: {error}", param_hint="--job") from error
    if not isinstance(job, dict):
        raise click.BadParameter(f"{path} should hold one JSON object", param_hint="--job")
    return job


def _facts(answer: WhatIfInfo) -> dict[str, Any]:
    return {
        "sentence": answer.sentence,
        "start": answer.start,
        "shrink": answer.shrink,
        "grow": answer.grow,
        "evict": answer.evict,
        "job": answer.job,
    }
