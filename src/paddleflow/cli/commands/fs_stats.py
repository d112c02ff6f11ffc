"""``paddleflow fs stats``: what a mount does, or what of a filesystem lies in the caches of which node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from paddleflow.cli.commands.fs_mount import wired_mounts
from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import draw_simple, show_list, to_json
from paddleflow.cli.places import is_local
from paddleflow.cli.sizes import spelt_size

_HEADER_EVERY = 30
_GROWING = ("hits", "misses", "hit_bytes", "miss_bytes")


@click.command()
@click.argument("what", metavar="{PATH|FSNAME}", shell_complete=filesystem_names)
@click.option("--interval", type=click.FloatRange(0.1), help="Of a mount: again and again, every so many seconds.")
@click.option("-l", "--lines", type=click.IntRange(1), help="With --interval: so often, then end.")
@click.option("-u", "--username", help="The owner of the filesystem, if it is another; for root.")
@click.pass_obj
def stats(invocation: Invocation, what: str, interval: float | None, lines: int | None, username: str | None) -> None:
    """show what a mount does (PATH), or what of a filesystem lies in which node's cache (FSNAME)

    The hit ratio is of bytes: those read from the cache, of all that were read.
    """
    if not is_local(what):
        _show_nodes(invocation, what, username)
    elif interval is None:
        told = wired_mounts().mount_stats(str(Path(what).absolute()))
        if invocation.output == "json":
            click.echo(to_json(told))
        else:
            click.echo(
                draw_simple(["item", "value"], [[name, shown(name, value)] for name, value in flat(told).items()])
            )
    else:
        _follow(str(Path(what).absolute()), interval, lines)


def _show_nodes(invocation: Invocation, fsname: str, username: str | None) -> None:
    _, found = invocation.client.fs_cache_stats(fsname, username)
    headers = ["node", "files", "bytes", "hits", "misses", "hit ratio", "last report"]
    rows = [
        [one.node, one.files, one.bytes, one.hits, one.misses, shown_ratio(one.hit_ratio), one.updated] for one in found
    ]
    show_list(invocation.output, headers, rows, nothing="no node has told of a cache ")


def _follow(path: str, interval: float, lines: int | None) -> None:
    """One line for each interval: what grew in it, by how much a second."""
    before, then = counters(wired_mounts().mount_stats(path)), time.monotonic()
    line = 0
    while lines is None or line < lines:
        time.sleep(interval)
        now, at = counters(wired_mounts().mount_stats(path)), time.monotonic()
        rates = [(name, (value - before.get(name, 0)) / (at - then)) for name, value in now.items()]
        if line % _HEADER_EVERY == 0:
            click.echo("  ".join(f"{name:>{width(name)}}" for name, _ in rates))
        click.echo("  ".join(f"{spelt_rate(name, rate):>{width(name)}}" for name, rate in rates))
        before, then, line = now, at, line + 1


def flat(told: Mapping[str, Any], above: str = "") -> dict[str, object]:
    """Nested figures with their names joined; ``True`` and texts as they are."""
    rows: dict[str, object] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            rows |= flat(value, f"{above}{name}.")
        else:
            rows[above + name] = value
    return rows


def counters(told: Mapping[str, Any]) -> dict[str, float]:
    """What only grows."""
    return {
        name: value
        for name, value in flat(told).items()
        if isinstance(value, int) and not isinstance(value, bool) and is_counter(name)
    }


def ratio_of(figures: Mapping[str, object]) -> dict[str, object]:
    """Of the bytes read, the part that came from the cache; nothing before anything was read."""
    hit, missed = (
        next((value for name, value in figures.items() if name.rpartition(".")[2] == wanted), None)
        for wanted in ("hit_bytes", "miss_bytes")
    )
    if not isinstance(hit, int) or not isinstance(missed, int) or not hit + missed:
        return {}
    return {"hit ratio": hit / (hit + missed)}


def is_counter(name: str) -> bool:
    return name.startswith(("requests.", "counters.")) or name.rpartition(".")[2] in _GROWING


def shown(name: str, value: object) -> object:
    """Permission bits as ``chmod`` takes them, a ratio in per cent; the rest as it is."""
    if name.endswith("_mode") and isinstance(value, int):
        return f"{value:04o}"
    return shown_ratio(value) if name.endswith("ratio") and isinstance(value, float) else value


def spelt_rate(name: str, rate: float) -> str:
    return f"{spelt_size(rate)}/s" if name.endswith("bytes") else f"{rate:.0f}/s"


def width(name: str) -> int:
    return max(len(name), 12)


def shown_ratio(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1%}"
