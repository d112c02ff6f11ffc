"""``paddleflow run watch``: a run followed to its end, drawn where there is a terminal, told in lines elsewhere.

The event stream says when something moved; only then the run is looked at again. Leaving with Ctrl-C leaves the run
running.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Protocol

import click

from paddleflow.cli.complete import run_ids
from paddleflow.cli.durations import spelt_whole_seconds
from paddleflow.cli.errors import ExitCode, run_exit_code
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.run_tree import Change, ServerClock, changes, one_line_of, progress, states
from paddleflow.domain.errors import Unavailable
from paddleflow.domain.runs import RunStatus

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.run_views import RunInfo


class Screen(Protocol):
    def look(self, run: RunInfo) -> None:
        """The run as it is now."""

    def close(self) -> None: ...


@click.command()
@click.argument("run_id", shell_complete=run_ids)
@click.pass_context
def watch(ctx: click.Context, run_id: str) -> None:
    """follow a run until it ends, drawn step by step

    Exits with 0 if the run succeeded and with 1 if it did not.
    """
    invocation: Invocation = ctx.obj
    ctx.exit(watch_to_the_end(invocation.client, run_id, as_json=invocation.output == "json"))


def watch_to_the_end(client: Client, run_id: str, *, as_json: bool = False) -> ExitCode:
    """Draw the run, or print what changes in it, until it has ended; the exit code it stands for."""
    if sys.stdout.isatty() and not as_json:
        from paddleflow.cli.run_screen import Drawing

        return _follow(client, run_id, Drawing(client, run_id))
    return _follow(client, run_id, _Lines(as_json=as_json))


def wait_to_the_end(client: Client, run_id: str) -> ExitCode:
    """Say how far the run is until it has ended; the exit code it stands for."""
    if sys.stderr.isatty():
        from paddleflow.cli.run_screen import Counter

        return _follow(client, run_id, Counter())
    return _follow(client, run_id, _Statuses())


def _follow(client: Client, run_id: str, screen: Screen) -> ExitCode:
    try:
        for run in client.watch_run(run_id):
            screen.look(run)
            if run.is_ended:
                screen.close()
                click.echo(_ending(run), err=True)
                if run.status == RunStatus.FAILED:
                    click.echo(f"see what its steps said with: paddleflow log run {run_id}", err=True)
                return run_exit_code(run.status)
        raise Unavailable(f"the server stopped telling about {run_id} before it ended")
    except KeyboardInterrupt:
        screen.close()
        click.echo(f"\n{run_id} keeps running; see it again with: paddleflow run watch {run_id}", err=True)
        return ExitCode.INTERRUPTED
    finally:
        screen.close()


def _ending(run: RunInfo) -> str:
    ended, known = progress(run)
    took = ServerClock().seconds(run.activate_time, run.finish_time, 0.0)
    after = "" if took is None else f" in {spelt_whole_seconds(took)}"
    told = f"{run.run_id} {run.status}{after}: {ended} of {known} steps ended"
    message = one_line_of(run.run_msg)
    return f"{told}; {message}" if message else told


class _Lines:
    """One line for each change of the run and its nodes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._seen: dict[str, Change] = {}

    def look(self, run: RunInfo) -> None:
        whole = {run.run_id: Change(key=run.run_id, status=run.status, message=one_line_of(run.run_msg))}
        # Told in the order of things: a run begins before its steps and ends after them.
        now = states(run) | whole if run.is_ended else whole | states(run)
        for change in changes(self._seen, now):
            click.echo(self._line(change))
        self._seen = now
        sys.stdout.flush()

    def _line(self, change: Change) -> str:
        if self._as_json:
            return json.dumps({"key": change.key, "status": change.status, "message": change.message})
        return f"{change.key} {change.status}" + (f": {change.message}" if change.message else "")

    def close(self) -> None:
        """Nothing is held open."""


class _Statuses:
    """One line for each status of the run itself."""

    def __init__(self) -> None:
        self._status = ""

    def look(self, run: RunInfo) -> None:
        if run.status != self._status and not run.is_ended:
            click.echo(f"{run.run_id} {run.status}", err=True)
        self._status = run.status

    def close(self) -> None:
        """Nothing is held open."""
