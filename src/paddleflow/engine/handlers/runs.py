"""Commands about runs: store what was handed in or decided, in one transaction.

What a run does next is decided by ``planning.advance``; ``advance_run`` stores such a decision with the jobs it starts,
so that a step is either not begun or has exactly one job.
"""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands, job_machine
from paddleflow.domain.access import require_owner
from paddleflow.domain.errors import Conflict, Invalid, NotFound, PaddleFlowError, Stale, Unavailable, not_found
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import CacheId, JobId, RunId, UserName, filesystem_id, numbered_id
from paddleflow.domain.jobs import Job
from paddleflow.domain.names import check_text
from paddleflow.domain.queries import PageRequest, RunFilter
from paddleflow.domain.runs import RUN_ENDED, NodeStatus, Run, RunNode, RunStatus, Stop
from paddleflow.domain.users import Actor
from paddleflow.engine.acceptance import accepted, check_fits, desk_of
from paddleflow.engine.context import Answer, Context
from paddleflow.planning.codec import load_plan
from paddleflow.planning.paths import run_directory
from paddleflow.planning.retry import kept_nodes

_DESCRIPTION_LIMIT = 1024
_TOLD = 200
"""How many moved nodes one event names; whoever wants all of them reads the run."""


def create_run(ctx: Context, command: commands.CreateRun) -> Answer:
    owner = UserName(command.owner or ctx.actor.name)
    if ctx.uow.users.find(owner) is None:
        raise NotFound(f"user[{owner[:80]}] does not exist", code="UserNotExist")
    return {"runID": store_run(ctx, command, owner).id}


def store_run(ctx: Context, command: commands.CreateRun, owner: UserName) -> Run:
    """A new run that waits to be taken up."""
    fs_id = None
    if command.fs_name:
        fs_id = filesystem_id(owner, command.fs_name)
        if ctx.uow.filesystems.find(fs_id) is None:
            raise Invalid(f"user[{owner}] has no filesystem [{command.fs_name[:80]}]", details={"field": "fsName"})
    run = ctx.uow.runs.add(
        Run(
            id=RunId(numbered_id("run", ctx.uow.numbers.next("run"))),
            name=command.name,
            owner=owner,
            source=command.source,
            text=command.text,
            plan=command.plan,
            fs_id=fs_id,
            fs_name=command.fs_name,
            description=check_text("desc", command.description, limit=_DESCRIPTION_LIMIT),
            parameters=command.parameters,
            docker_env=command.docker_env,
            disabled=command.disabled,
            strategy=command.strategy,
            schedule_id=command.schedule_id,
            scheduled_at=command.scheduled_at,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    _tell(ctx, EventKind.RUN_CREATED, run)
    return run


def stop_run(ctx: Context, command: commands.StopRun) -> Answer:
    ask_run_to_stop(ctx, _owned(ctx, command.id), force=command.force)
    return {}


def ask_run_to_stop(ctx: Context, run: Run, *, force: bool = False) -> None:
    if run.is_ended:
        raise Conflict(f"run[{run.id}] is {run.status} already and cannot be stopped")
    if run.stop is Stop.FORCE or (run.stop is Stop.GENTLE and not force):
        raise Conflict(f"run[{run.id}] is being stopped already; stop it with force to end its post_process too")
    stopping = ctx.uow.runs.save(
        replace(run, status=RunStatus.TERMINATING, stop=Stop.FORCE if force else Stop.GENTLE, updated_at=ctx.now)
    )
    _tell(ctx, EventKind.RUN_STOPPING, stopping)


def retry_run(ctx: Context, command: commands.RetryRun) -> Answer:
    """A new run of the same plan in which what has succeeded stays done."""
    old = _owned(ctx, command.id)
    if old.status not in (RunStatus.FAILED, RunStatus.TERMINATED):
        raise Conflict(f"run[{old.id}] is {old.status}; only a failed or terminated run can be retried")
    if not old.plan:
        raise Conflict(f"run[{old.id}] never began: there is nothing to retry")
    run = ctx.uow.runs.add(
        replace(
            old,
            id=RunId(numbered_id("run", ctx.uow.numbers.next("run"))),
            retry_of=old.id,
            status=RunStatus.INITIATING,
            stop=Stop.NO,
            message="",
            created_at=ctx.now,
            activated_at=None,
            finished_at=None,
            updated_at=ctx.now,
        )
    )
    nodes = ctx.uow.runs.nodes(old.id)
    gone = _gone(ctx, {node.source_run for node in nodes if node.source_run is not None})
    ctx.uow.runs.put_nodes(kept_nodes(load_plan(old.plan), nodes, old.id, run.id, gone))
    _tell(ctx, EventKind.RUN_CREATED, run)
    return {"runID": run.id}


def delete_run(ctx: Context, command: commands.DeleteRun) -> Answer:
    """With its jobs and their logs, its records, and (once the runner comes to it) its directory."""
    run = _owned(ctx, command.id)
    if not run.is_ended:
        raise Conflict(f"run[{run.id}] is {run.status}; stop it first, then delete it")
    if command.check_cache and (users := ctx.uow.runs.users_of(run.id)):
        raise Conflict(
            f"run[{run.id}] made results that run[{', '.join(users[:5])}] rely on; delete those first, or delete it "
            "without the check of the cache",
            details={"runs": list(users[:100])},
        )
    own = [node.job_id for node in ctx.uow.runs.nodes(run.id) if node.job_id and node.source_run is None]
    for job in ctx.uow.jobs.find_many(own):
        _delete_job(ctx, job)
    if run.fs_id is not None:
        ctx.uow.run_remains.add(run.id, run.fs_id, run_directory(load_plan(run.plan), run.id) if run.plan else "")
    ctx.uow.runs.delete(run.id)
    _tell(ctx, EventKind.RUN_DELETED, run)
    return {}


def _delete_job(ctx: Context, job: Job) -> None:
    if not job.is_terminal:
        return  # it belongs to a run that has not ended
    ctx.uow.jobs.delete(job.id)
    ctx.uow.remains.add(job.id, job.cluster)
    ctx.emit(EventKind.JOB_DELETED, job.id, job.owner, status=job.status, queue=job.queue)


def forget_run_remains(ctx: Context, command: commands.ForgetRunRemains) -> Answer:
    ctx.uow.run_remains.delete(command.id)
    return {}


def advance_run(ctx: Context, command: commands.AdvanceRun) -> Answer:
    """Answers which jobs were refused, and why; their nodes are stored as failed."""
    run = _without_texts(ctx, command.id)
    if run.version != command.seen:
        raise Stale(f"run[{run.id}] changed meanwhile; read it again")
    _check_reused(ctx, command)
    nodes = {node.key: node for node in command.nodes}
    refused = _submit(ctx, run, command, nodes)
    for job_id in command.stop:
        _stop_job(ctx, job_id)
    for entry in command.cache:
        ctx.uow.cache.add(replace(entry, id=CacheId(numbered_id("cch", ctx.uow.numbers.next("cch")))))
    never = {submission.id for key, submission in command.submit if key in refused}
    artifacts = tuple(event for event in command.artifacts if event.job_id not in never)
    if artifacts:
        ctx.uow.artifacts.add(artifacts)
    ctx.uow.runs.put_nodes(tuple(nodes.values()))
    status = command.status or run.status
    moved = ctx.uow.runs.save(
        replace(
            run,
            status=status,
            message=command.message or run.message,
            activated_at=run.activated_at or ctx.now,
            finished_at=ctx.now if status in RUN_ENDED else None,
            updated_at=ctx.now,
        )
    )
    told = [{"key": node.key, "status": node.status} for node in list(nodes.values())[:_TOLD]]
    _tell(ctx, EventKind.RUN_FINISHED if moved.is_ended else EventKind.RUN_ADVANCED, moved, nodes=told)
    return {"refused": refused, "version": moved.version}


def _check_reused(ctx: Context, command: commands.AdvanceRun) -> None:
    """A run whose result was found may have been deleted before its use was stored, which would have kept it."""
    gone = _gone(ctx, {node.cache_run_id for node in command.nodes if node.cache_run_id is not None})
    if gone:
        raise Stale(f"run[{min(gone)}], whose result was to be used again, was deleted meanwhile; look again")


def _gone(ctx: Context, ids: set[RunId]) -> set[RunId]:
    """Which of these runs do not exist any more."""
    return {
        run_id for run_id in ids if not ctx.uow.runs.page(RunFilter(ids=frozenset({run_id})), PageRequest(limit=1)).rows
    }


def _without_texts(ctx: Context, run_id: RunId) -> Run:
    """The row of a run that moves often; its text and plan are long and never change."""
    rows = ctx.uow.runs.page(RunFilter(ids=frozenset({run_id})), PageRequest(limit=1)).rows
    if not rows:
        raise not_found("run", run_id, code="RunNotFound")
    return rows[0]


def _submit(ctx: Context, run: Run, command: commands.AdvanceRun, nodes: dict[str, RunNode]) -> dict[str, str]:
    """Start the jobs, as the run's owner. One that is refused fails its node: a queue may have gone meanwhile."""
    refused: dict[str, str] = {}
    desk = desk_of(ctx, Actor(name=run.owner))
    for key, submission in command.submit:
        try:
            job = accepted(desk, submission)
            check_fits(desk, job)
            ctx.record(job_machine.submitted(ctx.uow.jobs.add(job), ctx.now).events)
        except Unavailable:
            raise  # an outage is not a refusal
        except PaddleFlowError as error:
            refused[key] = error.message
            nodes[key] = replace(
                nodes[key],
                status=NodeStatus.FAILED,
                message=error.message,
                job_id=None,
                started_at=ctx.now,
                finished_at=ctx.now,
            )
    return refused


def _stop_job(ctx: Context, job_id: JobId) -> None:
    job = ctx.uow.jobs.find(job_id)
    if job is None or job.is_terminal:
        return
    try:
        change = job_machine.stop(job, ctx.now)
    except Conflict:
        return  # it is being stopped already
    if change.events:
        ctx.uow.jobs.save(change.job)
    ctx.record(change.events)


def refuse_while_in_run(ctx: Context, job: Job) -> None:
    """A job that ended a moment ago may be one whose run has not heard of it yet."""
    node = ctx.uow.runs.node_of_job(job.id)
    if node is not None and not node.is_ended:
        raise Conflict(f"job {job.id} is a step of run[{node.run_id}], which has not taken notice of its end yet")


def delete_cache_entry(ctx: Context, command: commands.DeleteCacheEntry) -> Answer:
    entry = ctx.uow.cache.find(command.id)
    if entry is None:
        raise not_found("runCache", command.id[:80], code="RunCacheNotFound")
    require_owner(ctx.actor, entry.owner, "runCache", entry.id, code="AccessDenied")
    ctx.uow.cache.delete(entry.id)
    ctx.emit(EventKind.CACHE_DELETED, entry.id, entry.owner)
    return {}


def delete_artifact(ctx: Context, command: commands.DeleteArtifact) -> Answer:
    owner = UserName(command.owner or ctx.actor.name)
    gone = ctx.uow.artifacts.delete(owner, command.fs_name, command.run_id, command.path)
    if not gone:
        raise not_found("artifactEvent", f"{command.run_id}:{command.path}"[:160], code="ArtifactEventNotFound")
    ctx.emit(EventKind.ARTIFACT_DELETED, command.path, owner, run=command.run_id)
    return {}


def _tell(ctx: Context, kind: EventKind, run: Run, **more: object) -> None:
    ctx.emit(kind, run.id, run.owner, status=run.status, message=run.message, name=run.name, **more)


def _owned(ctx: Context, run_id: RunId) -> Run:
    run = ctx.uow.runs.find(run_id)
    if run is None:
        raise not_found("run", run_id[:80], code="RunNotFound")
    require_owner(ctx.actor, run.owner, "run", run.id, code="AccessDenied")
    return run
