"""``paddleflow job watch`` and ``job logs``: a job followed as it goes.

The log goes to standard output and everything said about the job to standard error, so that redirecting keeps the
log clean. Two threads listen (one to the job's changes, one to its log) and one, the main one, does all the printing.
Leaving with Ctrl-C leaves the job running.
"""

from __future__ import annotations

import collections
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import click

from paddleflow.cli.complete import job_ids
from paddleflow.cli.errors import ExitCode, job_exit_code
from paddleflow.cli.invocation import Invocation
from paddleflow.domain.errors import NotFound, PaddleFlowError, Unavailable

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.jobs import JobInfo

_NOT_STARTED = ("init", "pending")
_COLOURS = {"succeeded": "green", "failed": "red", "running": "cyan", "init": "yellow", "pending": "yellow"}
_BYTES_PER_LINE = 200
"""A first guess at how far from the end the last lines begin; it is widened until it is right."""


@click.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_context
def watch(ctx: click.Context, jobid: str) -> None:
    """follow a job's status and log until it ends

    Exits with 0 if the job succeeded, 10 if it failed, 11 if it was stopped.
    """
    invocation: Invocation = ctx.obj
    ctx.exit(watch_to_the_end(invocation.client, jobid))


@click.command()
@click.argument("jobid", shell_complete=job_ids)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--task", help="The task, if the job has several.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@click.pass_context
def logs(ctx: click.Context, jobid: str, follow: bool, task: str | None, tail: int | None) -> None:
    """print a job's log"""
    invocation: Invocation = ctx.obj
    client = invocation.client
    try:
        if tail is None:
            _print_all(client.stream_log(jobid, task, follow))
        elif follow:
            _print_tail_then_follow(client, jobid, task, tail)
        else:
            sys.stdout.write(last_lines(lambda start: _read(client, jobid, task, start), tail))
    except KeyboardInterrupt:
        ctx.exit(_left_running(jobid))


def watch_to_the_end(client: Client, jobid: str) -> ExitCode:
    """Print changes and log of the job until it ends; the exit code it stands for."""
    screen = _screen()
    try:
        for happening in _happenings(client, jobid):
            if isinstance(happening, str):
                screen.log(happening)
                continue
            screen.status(happening, _why(client, happening))
            if happening.is_terminal:
                return job_exit_code(happening.status)
        raise Unavailable(f"the server stopped telling about {jobid} before it ended")
    except KeyboardInterrupt:
        return _left_running(jobid)
    finally:
        screen.close()


def _happenings(client: Client, jobid: str) -> Iterator[JobInfo | str]:
    """The job's changes and the text of its log, in the order they are heard of; the last change comes at the end."""
    heard: queue.SimpleQueue[JobInfo | str | BaseException | None] = queue.SimpleQueue()

    def listen(source: Callable[[], Iterable[JobInfo | str]]) -> None:
        def pump() -> None:
            try:
                for item in source():
                    heard.put(item)
                heard.put(None)
            except Exception as error:  # noqa: BLE001 - whatever it is, the main thread raises it
                heard.put(error)

        threading.Thread(target=pump, daemon=True).start()

    listen(lambda: client.watch_job(jobid))
    open_sources, log_wanted, last = 1, True, None
    while open_sources:
        item = heard.get()
        if item is None:
            open_sources -= 1
        elif isinstance(item, BaseException):
            raise item
        elif isinstance(item, str):
            yield item
        else:
            if log_wanted and item.status not in _NOT_STARTED:
                log_wanted = False
                open_sources += 1
                listen(lambda: _log_of_started(client, jobid))
            if item.is_terminal:
                last = item
            else:
                yield item
    if last is not None:
        yield last


def _log_of_started(client: Client, jobid: str) -> Iterator[str]:
    try:
        yield from client.stream_log(jobid)
    except NotFound:
        # Stopped before it started: there never was a log.
        return


def _why(client: Client, job: JobInfo) -> str:
    if job.status not in _NOT_STARTED:
        return job.message
    try:
        reason = client.why_job(job.job_id)[1]
        return reason.sentence if reason.status == job.status else job.message  # it has moved on since
    except PaddleFlowError:
        # The reason is a courtesy; the watch goes on without it.
        return job.message


def _left_running(jobid: str) -> ExitCode:
    click.echo(f"\n{jobid} keeps running; see it again with: paddleflow job watch {jobid}", err=True)
    return ExitCode.INTERRUPTED


def _print_all(texts: Iterable[str]) -> None:
    for text in texts:
        sys.stdout.write(text)
        sys.stdout.flush()


def _read(client: Client, jobid: str, task: str | None, start: int) -> bytes:
    return b"".join(client.stream_log_bytes(jobid, task, False, start=start))


def last_lines(read_from: Callable[[int], bytes], count: int) -> str:
    """The last ``count`` lines; ``read_from(-n)`` gives the last n bytes, or all there is."""
    if count == 0:
        return ""
    window = count * _BYTES_PER_LINE
    while True:
        content = read_from(-window)
        lines = content.splitlines(keepends=True)
        # One line more than wanted, or the first may be cut; less than asked for is the whole log.
        if len(lines) > count or len(content) < window:
            return b"".join(lines[-count:]).decode(errors="replace")
        window *= 8


def _print_tail_then_follow(client: Client, jobid: str, task: str | None, count: int) -> None:
    """What is there is read through once to learn where it ends; from that very byte the rest is followed."""
    position, rest = 0, b""
    kept: collections.deque[bytes] = collections.deque(maxlen=count)
    for chunk in client.stream_log_bytes(jobid, task, False):
        position += len(chunk)
        *whole, rest = (rest + chunk).splitlines(keepends=True)
        kept.extend(whole)
    kept.extend([rest] if rest else [])
    _print_all([b"".join(kept).decode(errors="replace")])
    _print_all(client.stream_log(jobid, task, True, start=position))


class _Screen(Protocol):
    def status(self, job: JobInfo, reason: str) -> None: ...
    def log(self, text: str) -> None: ...
    def close(self) -> None: ...


def _screen() -> _Screen:
    return _Terminal() if sys.stderr.isatty() else _Plain()


class _Plain:
    """One line for each change."""

    def status(self, job: JobInfo, reason: str) -> None:
        click.echo(f"{job.job_id} {job.status}" + (f": {reason}" if reason else ""), err=True)

    def log(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def close(self) -> None:
        """Nothing is held open."""


class _Terminal:
    """Coloured lines, and a spinner with the reason while the job waits."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._spinner = self._console.status("")
        self._at_line_start = True

    def status(self, job: JobInfo, reason: str) -> None:
        from rich.text import Text

        self._spinner.stop()
        if not self._at_line_start:
            self._console.print()
            self._at_line_start = True
        line = Text.assemble((job.job_id, "bold"), " ", (job.status, _COLOURS.get(job.status, "magenta")))
        self._console.print(line.append(f": {reason}" if reason else ""))
        if job.status in _NOT_STARTED:
            self._spinner.update(Text(reason or "waiting"))
            self._spinner.start()

    def log(self, text: str) -> None:
        self._spinner.stop()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._at_line_start = text.endswith("\n") or not sys.stdout.isatty()

    def close(self) -> None:
        self._spinner.stop()
