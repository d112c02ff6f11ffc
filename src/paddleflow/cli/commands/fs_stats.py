"""``paddleflow fs stats``: what a mount does, or what of a filesystem lies in the caches of which node."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from paddleflow.cli.commands.fs_mount import wired_mounts
from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_facts, show_list, to_json
from paddleflow.cli.places import is_local, owner_option
from paddleflow.cli.sizes import spelt_size

_HEADER_EVERY = 30
_WIDTH = 12
_GROWING = ("hits", "misses", "hit_bytes", "miss_bytes")


@click.command()
@click.argument("what", metavar="{PATH|FSNAME}", shell_complete=filesystem_names)
@click.option("--interval", type=click.FloatRange(0.1), help="Of a mount: again and again, every so many seconds.")
@click.option("-l", "--lines", type=click.IntRange(1), help="With --interval: so often, then end.")
@owner_option
@click.pass_obj
def stats(invocation: Invocation, what: str, interval: float | None, lines: int | None, username: str | None) -> None:
    """show what a mount does (PATH), or what of a filesystem lies in which node's cache (FSNAME)

    A directory that is a mount goes before a filesystem of the same name. The hit ratio is of bytes: those read from
    the cache, of all that were read.
    """
    is_json = invocation.output == "json"
    if not is_local(what) and not os.path.ismount(what):
        if interval is not None:
            raise click.UsageError(
                f"--interval is for a mount, and {what!r} is none; write its directory, e.g. ./{what}"
            )
        _show_nodes(invocation, what, username)
    elif interval is None:
        told = with_ratio(wired_mounts().mount_stats(str(Path(what).absolute())))
        if is_json:
            click.echo(to_json(told))
        else:
            show_facts(["item", "value"], [[name, shown(name, value)] for name, value in flat(told).items()])
    else:
        _follow(str(Path(what).absolute()), interval, lines, is_json=is_json)


def _show_nodes(invocation: Invocation, fsname: str, username: str | None) -> None:
    _, found = invocation.client.fs_cache_stats(fsname, username)
    headers = ["node", "files", "bytes", "hits", "misses", "hit ratio", "last report"]
    rows = [
        [one.node, one.files, one.bytes, one.hits, one.misses, shown_ratio(one.hit_ratio), one.updated] for one in found
    ]
    show_list(invocation.output, headers, rows, nothing="no node has told of a cache ")


def _follow(path: str, interval: float, lines: int | None, *, is_json: bool) -> None:
    """One line for each interval: what grew in it, by how much a second. As JSON, one object in a line."""
    before, then = rising(wired_mounts().mount_stats(path)), time.monotonic()
    line = 0
    while lines is None or line < lines:
        time.sleep(interval)
        now, at = rising(wired_mounts().mount_stats(path)), time.monotonic()
        rates = [(name, max(0.0, value - before[name]) / (at - then)) for name, value in now.items()]
        if is_json:
            click.echo(json.dumps({name: round(rate, 1) for name, rate in rates}))
        else:
            if line % _HEADER_EVERY == 0:
                click.echo("  ".join(f"{name:>{_WIDTH}}" for name, _ in rates))
            click.echo("  ".join(f"{spelt_rate(name, rate):>{_WIDTH}}" for name, rate in rates))
        before, then, line = now, at, line + 1


def rising(told: Mapping[str, Any]) -> dict[str, float]:
    """What only grows: calls that reached the daemon, and how files were opened and bytes came."""
    counted = told.get("counters", {})
    return {"requests": sum(told.get("requests", {}).values()), **{name: counted.get(name, 0) for name in _GROWING}}


def flat(told: Mapping[str, Any], above: str = "") -> dict[str, object]:
    """Nested figures with their names joined; ``True`` and texts as they are."""
    rows: dict[str, object] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            rows |= flat(value, f"{above}{name}.")
        else:
            rows[above + name] = value
    return rows


def with_ratio(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of the bytes read, the part that came from the cache; nothing before anything was read."""
    counted = told.get("counters", {})
    hit, missed = counted.get("hit_bytes", 0), counted.get("miss_bytes", 0)
    return {**told, "hit_ratio": hit / (hit + missed)} if hit + missed else dict(told)


def shown(name: str, value: object) -> object:
    """Permission bits as ``chmod`` takes them, a ratio in per cent; the rest as it is."""
    if name.endswith("_mode") and isinstance(value, int):
        return f"{value:04o}"
    return shown_ratio(value) if name.endswith("ratio") and isinstance(value, float) else value


def spelt_rate(name: str, rate: float) -> str:
    return f"{spelt_size(rate)}/s" if name.endswith("bytes") else f"{rate:.0f}/s"


def shown_ratio(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1%}"
