"""Runs: rows and repository. Their nodes are in run_nodes.py.

What was written and what it was compiled to are long and never change, so they have a table of their own: it is read
when a whole run is asked for, and written once. Saving a run leaves both as they are, so a run that came from a list,
without them, may be saved too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.pages import Pages
from paddleflow.adapters.sql.pipeline_tables import run_texts, runs
from paddleflow.adapters.sql.run_nodes import node_of_job, nodes_of_run, put_nodes, users_of
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_plain, insert_row, update_version
from paddleflow.adapters.sql.values import (
    from_micros,
    from_micros_or_null,
    mapping_from_json,
    mapping_to_json,
    to_micros,
    to_micros_or_null,
)
from paddleflow.domain.ids import JobId, RunId, ScheduleId
from paddleflow.domain.queries import Page, PageRequest, RunFilter
from paddleflow.domain.runs import RUN_ACTIVE, Run, RunNode, RunStatus, Stop

_WHOLE = select(runs, run_texts.c.text, run_texts.c.plan).join_from(runs, run_texts, run_texts.c.run_id == runs.c.id)
_BY_ID = Statement(_WHOLE.where(runs.c.id == bindparam("id")))
_ADD = insert_row(runs)
_ADD_TEXTS = insert_plain(run_texts)
_SAVE = update_version(runs, "id")
_DELETE = delete_by(runs, "id")
_PAGES = Pages(runs)
_ACTIVE_OF_SCHEDULE = Statement(
    select(runs)
    .where(
        runs.c.schedule_id == bindparam("schedule_id"),
        runs.c.status.in_([bindparam(f"status_{n}") for n in range(len(RUN_ACTIVE))]),
    )
    .order_by(runs.c.seq)
)


@lru_cache(maxsize=len(RunStatus))
def _in_status(count: int) -> Statement:
    among = runs.c.status.in_([bindparam(f"status_{n}") for n in range(count)])
    return Statement(_WHOLE.where(among).order_by(runs.c.seq))


def _statuses(wanted: frozenset[RunStatus]) -> dict[str, object]:
    return {f"status_{n}": status.value for n, status in enumerate(wanted)}


def _run(row: Row) -> Run:
    (
        seq,
        id,
        name,
        owner,
        source,
        fs_id,
        fs_name,
        description,
        parameters,
        docker_env,
        disabled,
        strategy,
        schedule_id,
        scheduled_at,
        retry_of,
        status,
        stop,
        message,
        created_at,
        activated_at,
        finished_at,
        updated_at,
        version,
        *texts,
    ) = row
    text, plan = texts or ("", "")
    return Run(
        id=id,
        name=name,
        owner=owner,
        source=source,
        text=text,
        plan=plan,
        fs_id=fs_id,
        fs_name=fs_name,
        description=description,
        parameters=mapping_from_json(parameters),
        docker_env=docker_env,
        disabled=disabled,
        strategy=strategy,
        schedule_id=schedule_id,
        scheduled_at=from_micros_or_null(scheduled_at),
        retry_of=retry_of,
        status=RunStatus(status),
        stop=Stop(stop),
        message=message,
        created_at=from_micros(created_at),
        activated_at=from_micros_or_null(activated_at),
        finished_at=from_micros_or_null(finished_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(run: Run, version: int) -> dict[str, object]:
    return {
        "id": run.id,
        "name": run.name,
        "owner": run.owner,
        "source": run.source,
        "fs_id": run.fs_id,
        "fs_name": run.fs_name,
        "description": run.description,
        "parameters": mapping_to_json(run.parameters),
        "docker_env": run.docker_env,
        "disabled": run.disabled,
        "strategy": run.strategy,
        "schedule_id": run.schedule_id,
        "scheduled_at": to_micros_or_null(run.scheduled_at),
        "retry_of": run.retry_of,
        "status": run.status.value,
        "stop": run.stop.value,
        "message": run.message,
        "created_at": to_micros(run.created_at),
        "activated_at": to_micros_or_null(run.activated_at),
        "finished_at": to_micros_or_null(run.finished_at),
        "updated_at": to_micros(run.updated_at),
        "version": version,
    }


def active_runs_of(session: Session, id: ScheduleId) -> tuple[Run, ...]:
    """Without their texts, the oldest first."""
    rows = session.rows(_ACTIVE_OF_SCHEDULE, {"schedule_id": id, **_statuses(RUN_ACTIVE)})
    return tuple(_run(row) for row in rows)


class SqlRuns:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: RunId) -> Run | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _run(row)

    def add(self, run: Run) -> Run:
        seq = self._session.insert(_ADD, _row(run, 1), kind="run", name=run.id)
        self._session.change(_ADD_TEXTS, {"run_id": run.id, "text": run.text, "plan": run.plan})
        return replace(run, seq=seq, version=1)

    def save(self, run: Run) -> Run:
        version = run.version + 1
        self._session.save(_SAVE, _row(run, version), kind="run", name=run.id, seen=run.version)
        return replace(run, version=version)

    def delete(self, id: RunId) -> None:
        """Texts, nodes, artifact records and cache entries go by their foreign keys."""
        self._session.change(_DELETE, {"id": id})

    def page(self, where: RunFilter, request: PageRequest) -> Page[Run]:
        rows = _PAGES.rows(
            self._session,
            request,
            owner=where.owners,
            fs_name=where.fs_names,
            id=where.ids,
            name=where.names,
            status=where.statuses,
            schedule_id=() if where.schedule is None else (where.schedule,),
        )
        return page_of([_run(row) for row in rows], request)

    def in_status(self, statuses: frozenset[RunStatus]) -> tuple[Run, ...]:
        if not statuses:
            return ()
        return tuple(_run(row) for row in self._session.rows(_in_status(len(statuses)), _statuses(statuses)))

    def nodes(self, id: RunId) -> tuple[RunNode, ...]:
        return nodes_of_run(self._session, id)

    def put_nodes(self, nodes: Sequence[RunNode]) -> None:
        put_nodes(self._session, nodes)

    def node_of_job(self, id: JobId) -> RunNode | None:
        return node_of_job(self._session, id)

    def users_of(self, id: RunId) -> tuple[RunId, ...]:
        return users_of(self._session, id)
