"""Names that the shell completes, asked from the server.

Completion runs while the user types, so it never prints and never fails: no answer is no suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.domain.errors import PaddleFlowError

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client

_LIMIT = 1000


def _names(ctx: click.Context, incomplete: str, ask: Callable[[Client], Iterable[str]]) -> list[str]:
    given = ctx.find_root().params.get("pf_config")
    invocation = Invocation(Path(given) if given else None, "text", is_patient=False)
    try:
        return [name for name in ask(invocation.client) if name.startswith(incomplete)]
    except PaddleFlowError:
        # No server, no log-in: nothing to suggest, and no place to say so.
        return []
    finally:
        invocation.close()


def job_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda client: [job.job_id for job in client.list_job(maxkeys=_LIMIT)[1]])


def queue_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda client: [queue.name for queue in client.list_queue(_LIMIT)[1]])


def flavour_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda client: [one.name for one in client.list_flavour(_LIMIT)[1]])


def run_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda client: [one.run_id for one in client.list_run(maxsize=_LIMIT)[1]["runList"]])


def step_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of the run named before it."""

    def ask(client: Client) -> Iterable[str]:
        _, timing = client.run_timing(ctx.params.get("run_id") or "")
        return [step["key"] for step in timing["steps"] if step["type"] == "step"]

    return _names(ctx, incomplete, ask)


def output_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """``STEP.ARTIFACT`` of the run named before it."""
    return _names(
        ctx, incomplete, lambda client: [one.name for one in client.run_outputs(ctx.params.get("run_id") or "")[1]]
    )


def pipeline_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(
        ctx,
        incomplete,
        lambda client: [one.pipeline_id for one in client.list_pipeline(max_keys=_LIMIT)[1]["pipelineList"]],
    )


def schedule_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(
        ctx,
        incomplete,
        lambda client: [one.schedule_id for one in client.list_schedule(max_keys=_LIMIT)[1]["scheduleList"]],
    )


def filesystem_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda client: [one.name for one in client.list_fs(maxsize=_LIMIT)[1]])


def filesystem_places(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """``FSNAME:`` and, where one stands already, nothing more: looking into a storage takes longer than typing."""
    if ":" in incomplete or "/" in incomplete:
        return []
    return [f"{name}:/" for name in filesystem_names(ctx, param, incomplete)]
