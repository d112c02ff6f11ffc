"""How far a copy or a warm-up has come: a bar on a terminal, now and then a line elsewhere, and one line at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from paddleflow.cli.durations import spelt_seconds
from paddleflow.cli.output import to_json
from paddleflow.cli.sizes import spelt_size

if TYPE_CHECKING:
    from paddleflow.sdk.file_access import Progress, Transferred

_LINE_EVERY_S = 10.0


@contextmanager
def shown_progress(label: str) -> Iterator[Progress]:
    """Told from several threads; it goes to standard error, so that standard output stays the command's own."""
    if not sys.stderr.isatty():
        yield _Lines(label).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def tell(so_far: Transferred) -> None:
            text = f"{label} {so_far.files}/{so_far.total_files} files"
            bar.update(task, description=text, completed=so_far.bytes, total=so_far.total_bytes or None)

        yield tell


class _Lines:
    def __init__(self, label: str) -> None:
        self._label = label
        self._next = time.monotonic() + _LINE_EVERY_S

    def tell(self, so_far: Transferred) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LINE_EVERY_S
        click.echo(
            f"{self._label} {so_far.files} of {so_far.total_files} files, {spelt_size(so_far.bytes)} of "
            f"{spelt_size(so_far.total_bytes)}",
            err=True,
        )


def show_summary(output: str, what: str, done: Transferred, took_s: float) -> None:
    """The one line at the end; with ``--output json`` its figures."""
    if output == "json":
        click.echo(to_json({"files": done.files, "bytes": done.bytes, "seconds": round(took_s, 3)}))
    else:
        click.echo(f"{what}, {summary(done, took_s)}")


def summary(done: Transferred, took_s: float) -> str:
    """``12 files, 3.4 GiB in 1.2s``."""
    files = "1 file" if done.files == 1 else f"{done.files} files"
    return f"{files}, {spelt_size(done.bytes)} in {spelt_seconds(took_s)}"
