"""``paddleflow job watch`` and ``job logs``: a job followed as it goes.

The log goes to standard output and everything said about the job to standard error, so that redirecting keeps the
log clean. Several threads listen (one to the job's changes, one to the log of each task) and one, the main one, does
all the printing. Lines of a job with several tasks begin with the task: ``[worker-0] ``. Leaving with Ctrl-C leaves the
job running.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import click

from paddleflow.cli.complete import job_ids
from paddleflow.cli.errors import ExitCode, job_exit_code
from paddleflow.cli.invocation import Invocation
from paddleflow.domain.errors import NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.jobs import TaskStatus

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.jobs import JobInfo

_NOT_STARTED = ("init", "pending")
_COLOURS = {"succeeded": "green", "failed": "red", "running": "cyan", "init": "yellow", "pending": "yellow"}
_BYTES_PER_LINE = 200
"""A first guess at how far from the end the last lines begin; it is widened until it is right."""
_MOST_FOLLOWED = 64
"""Logs listened to at once: each takes a thread here and a connection there, and nobody reads more."""

Heard = TypeVar("Heard")
Log = tuple[str, str | None]
"""What every line of a log begins with, and whose log it is; None: the server chooses the task."""


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
@click.option("--task", help="One task of several: its id, or as in worker-0.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines, of each task.")
@click.pass_context
def logs(ctx: click.Context, jobid: str, follow: bool, task: str | None, tail: int | None) -> None:
    """print a job's log"""
    invocation: Invocation = ctx.obj
    client = invocation.client
    try:
        wanted = _logs_of(client.show_job(jobid)[1], task)
        if follow:
            ears: _Ears[str] = _Ears()
            for log in _within_limit(wanted, 0):
                ears.listen(partial(_followed, client, jobid, log, tail))
            _print_all(ears)
        else:
            for log in wanted:
                _print_all(_printed(client, jobid, log, tail))
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


class _Ears(Generic[Heard]):
    """Listens to several sources at once, each in a thread of its own; what they say is heard in one, as it comes."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[Heard | _Silence | _Trouble] = queue.SimpleQueue()
        self._open = 0

    def listen(self, source: Callable[[], Iterable[Heard]]) -> None:
        """May be called while others are listened to."""
        self._open += 1

        def pump() -> None:
            try:
                for item in source():
                    self._said.put(item)
                self._said.put(_Silence())
            except Exception as error:  # noqa: BLE001 - whatever it is, the main thread raises it
                self._said.put(_Trouble(error))

        threading.Thread(target=pump, daemon=True).start()

    def __iter__(self) -> Iterator[Heard]:
        while self._open:
            item = self._said.get()
            if isinstance(item, _Silence):
                self._open -= 1
            elif isinstance(item, _Trouble):
                raise item.error
            else:
                yield item


class _Silence:
    """A source has nothing more to say."""


class _Trouble:
    def __init__(self, error: Exception) -> None:
        self.error = error


def _happenings(client: Client, jobid: str) -> Iterator[JobInfo | str]:
    """The job's changes and the text of its logs, in the order they are heard of; the last change comes at the end."""
    ears: _Ears[JobInfo | str] = _Ears()
    ears.listen(lambda: client.watch_job(jobid))
    heard_of: set[Log] = set()
    last = None
    for item in ears:
        if isinstance(item, str):
            yield item
            continue
        if item.status not in _NOT_STARTED:
            new = [log for log in _logs_of(item, None) if log not in heard_of]
            heard_of.update(new)
            for log in _within_limit(new, len(heard_of) - len(new)):
                ears.listen(partial(_log_of_started, client, jobid, log))
        if item.is_terminal:
            last = item
        else:
            yield item
    if last is not None:
        yield last


def _logs_of(job: JobInfo, task: str | None) -> list[Log]:
    """Whose log to show: that of the task asked for, or those of all the tasks the job consists of now."""
    present = _present_tasks(job)
    names = {f"{one['role']}-{one['index']}": str(one["name"]) for one in reversed(job.tasks) if "role" in one}
    if task is not None:
        return [("", names.get(task, task))]
    if len(present) <= 1:
        return [("", present[0]["name"] if present else None)]
    return [(f"[{one['role']}-{one['index']}] ", one["name"]) for one in present]


def _present_tasks(job: JobInfo) -> list[dict[str, Any]]:
    """Without those of earlier attempts, which come after them in the answer."""
    tasks = [one for one in job.tasks if one.get("name")]
    if job.distributed_runtime is None:
        return tasks
    counted = json.loads(job.distributed_runtime.get("status") or "{}")
    return tasks[: sum(counted.get(status, 0) for status in TaskStatus)]


def _within_limit(logs: list[Log], already: int) -> list[Log]:
    room = max(0, _MOST_FOLLOWED - already)
    if len(logs) > room:
        told = (
            f"following {_MOST_FOLLOWED} of {already + len(logs)} tasks; see another with: paddleflow job logs --task"
        )
        click.echo(told, err=True)
    return logs[:room]


def _labelled(label: str, texts: Iterable[str]) -> Iterator[str]:
    """The texts, cut into whole lines that begin with the label; without one they are left as they come."""
    if not label:
        yield from texts
        return
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        if lines:
            yield "".join(f"{label}{line}\n" for line in lines)
    if rest:
        yield f"{label}{rest}\n"


def _log_of_started(client: Client, jobid: str, log: Log) -> Iterator[str]:
    label, task = log
    try:
        yield from _labelled(label, client.stream_log(jobid, task))
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


def _printed(client: Client, jobid: str, log: Log, tail: int | None) -> Iterator[str]:
    """What there is of a log, or its last lines."""
    label, task = log
    if tail is None:
        return _labelled(label, client.stream_log(jobid, task, False))
    return _labelled(label, [last_lines(partial(client.read_log_end, jobid, task), tail)[0]])


def _followed(client: Client, jobid: str, log: Log, tail: int | None) -> Iterator[str]:
    label, task = log
    return _labelled(
        label, client.stream_log(jobid, task) if tail is None else _tail_then_follow(client, jobid, task, tail)
    )


def last_lines(read_end: Callable[[int], tuple[bytes, int]], count: int) -> tuple[str, int]:
    """The last ``count`` lines and the byte they end at; ``read_end(n)`` gives the last n bytes, or all there is."""
    window = max(1, count * _BYTES_PER_LINE)
    while True:
        content, end = read_end(window)
        lines = content.splitlines(keepends=True)
        # One line more than wanted, or the first may be cut. Of a log with a gap less may come than was asked for.
        if len(lines) > count or window >= end:
            return b"".join(lines[len(lines) - count :] if count < len(lines) else lines).decode(errors="replace"), end
        window *= 8


def _tail_then_follow(client: Client, jobid: str, task: str | None, count: int) -> Iterator[str]:
    """From the very byte where the last lines end, the rest is followed."""
    text, end = last_lines(partial(client.read_log_end, jobid, task), count)
    yield text
    yield from client.stream_log(jobid, task, True, start=end)


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
