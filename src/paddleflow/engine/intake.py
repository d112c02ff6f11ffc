"""The way in: every change of state, whoever wants it, is a command given here.

Authorize, then one handler, then one transaction of rows and events. A request with an idempotency key is answered from
its receipt when it comes again, and the receipt is written in the same transaction as what it is a receipt of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from paddleflow.domain import commands
from paddleflow.domain.access import authorize
from paddleflow.domain.commands import Command
from paddleflow.domain.errors import Conflict, NotFound, Stale
from paddleflow.domain.ids import spell_id
from paddleflow.domain.names import check_password, check_text
from paddleflow.domain.storages import shown_properties
from paddleflow.domain.users import Actor
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.context import Answer, Context
from paddleflow.engine.handlers import (
    access,
    capacity,
    catalog,
    filesystems,
    installation,
    jobs,
    mounts,
    runs,
    schedules,
    snapshots,
)
from paddleflow.ports.clock import Clock
from paddleflow.ports.identity import Identity
from paddleflow.ports.store import Receipt, Store, UnitOfWork

_ATTEMPTS = 5
"""How often a command is tried again when a row changed under it (several servers on one database)."""

# Any: each handler takes its own command type; the key guarantees that it gets exactly that one.
_HANDLERS: dict[type, Callable[[Context, Any], Answer]] = {
    commands.SeedInstallation: installation.seed_installation,
    commands.CreateUser: access.create_user,
    commands.SetPassword: access.set_password,
    commands.DeleteUser: access.delete_user,
    commands.CreateGrant: access.create_grant,
    commands.DeleteGrant: access.delete_grant,
    commands.CreateFlavour: capacity.create_flavour,
    commands.UpdateFlavour: capacity.update_flavour,
    commands.DeleteFlavour: capacity.delete_flavour,
    commands.CreateQueue: capacity.create_queue,
    commands.UpdateQueue: capacity.update_queue,
    commands.DeleteQueue: capacity.delete_queue,
    commands.CreateCluster: capacity.create_cluster,
    commands.UpdateCluster: capacity.update_cluster,
    commands.DeleteCluster: capacity.delete_cluster,
    commands.ReportNodes: capacity.report_nodes,
    commands.CreateFilesystem: filesystems.create_filesystem,
    commands.UpdateFilesystem: filesystems.update_filesystem,
    commands.DeleteFilesystem: filesystems.delete_filesystem,
    commands.CreateLink: filesystems.create_link,
    commands.DeleteLink: filesystems.delete_link,
    commands.CreateCacheConfig: mounts.create_cache_config,
    commands.UpdateCacheConfig: mounts.update_cache_config,
    commands.DeleteCacheConfig: mounts.delete_cache_config,
    commands.OpenMount: mounts.open_mount,
    commands.RenewMount: mounts.renew_mount,
    commands.CloseMount: mounts.close_mount,
    commands.ReportCache: mounts.report_cache,
    commands.CreateSnapshot: snapshots.create_snapshot,
    commands.DeleteSnapshot: snapshots.delete_snapshot,
    commands.ReportSnapshot: snapshots.report_snapshot,
    commands.ForgetSnapshot: snapshots.forget_snapshot,
    commands.SubmitJob: jobs.submit_job,
    commands.UpdateJob: jobs.update_job,
    commands.StopJob: jobs.stop_job,
    commands.DeleteJob: jobs.delete_job,
    commands.AdmitJob: jobs.admit_job,
    commands.ReserveRoom: jobs.reserve_room,
    commands.EvictJob: jobs.evict_job,
    commands.ResizeJob: jobs.resize_job,
    commands.ExpireJob: jobs.expire_job,
    commands.FailJob: jobs.fail_job,
    commands.ForgetRemains: jobs.forget_remains,
    commands.ReportTask: jobs.report_task,
    commands.CreateRun: runs.create_run,
    commands.StopRun: runs.stop_run,
    commands.RetryRun: runs.retry_run,
    commands.DeleteRun: runs.delete_run,
    commands.AdvanceRun: runs.advance_run,
    commands.ForgetRunRemains: runs.forget_run_remains,
    commands.DeleteCacheEntry: runs.delete_cache_entry,
    commands.DeleteArtifact: runs.delete_artifact,
    commands.CreatePipeline: catalog.create_pipeline,
    commands.UpdatePipeline: catalog.update_pipeline,
    commands.DeletePipeline: catalog.delete_pipeline,
    commands.DeletePipelineVersion: catalog.delete_pipeline_version,
    commands.CreateSchedule: schedules.create_schedule,
    commands.StopSchedule: schedules.stop_schedule,
    commands.DeleteSchedule: schedules.delete_schedule,
    commands.FireSchedule: schedules.fire_schedule,
}


_T = TypeVar("_T")


class Intake:
    def __init__(self, store: Store, clock: Clock, identity: Identity, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._store = store
        self._clock = clock
        self._identity = identity

    def submit(self, command: Command, actor: Actor, *, request_id: str = "", idempotency_key: str = "") -> Answer:
        """Carry out one command, wholly or not at all."""
        authorize(actor, command)
        check_text("Idempotency-Key", idempotency_key, limit=256)
        password_hash = self._hash_password(command)
        return _again_if_stale(lambda: self._once(command, actor, request_id, idempotency_key, password_hash))

    def submit_together(self, commands_: Sequence[Command], actor: Actor) -> list[Answer | None]:
        """Carry out several commands in one transaction, for reactors that have many at once.

        One that the state forbids by now (None in the answers) writes nothing and does not spoil the others; anything
        worse spoils them all.
        """
        for command in commands_:
            authorize(actor, command)
        return _again_if_stale(lambda: self._together(commands_, actor)) if commands_ else []

    def _together(self, commands_: Sequence[Command], actor: Actor) -> list[Answer | None]:
        answers: list[Answer | None] = []
        with self._store.write() as uow:
            ctx = self._context(uow, actor, "", "")
            for command in commands_:
                try:
                    answers.append(_HANDLERS[type(command)](ctx, command))
                except Stale:
                    raise
                except (Conflict, NotFound):
                    answers.append(None)
        return answers

    def _context(self, uow: UnitOfWork, actor: Actor, request_id: str, password_hash: str) -> Context:
        return Context(
            uow=uow,
            actor=actor,
            now=self._clock.now(),
            request_id=request_id,
            new_id=self._new_id,
            seal=self._identity.seal,
            unseal=self._identity.unseal,
            capabilities=self._capabilities,
            password_hash=password_hash,
        )

    def _once(self, command: Command, actor: Actor, request_id: str, key: str, password_hash: str) -> Answer:
        with self._store.write() as uow:
            fingerprint = _fingerprint(command) if key else ""
            if key and (receipt := uow.receipts.find(actor.name, key)) is not None:
                if receipt.fingerprint != fingerprint:
                    raise Conflict("this Idempotency-Key was used for another request", code="InvalidArguments")
                return receipt.answer
            ctx = self._context(uow, actor, request_id, password_hash)
            answer = _HANDLERS[type(command)](ctx, command)
            if key:
                uow.receipts.add(Receipt(owner=actor.name, key=key, fingerprint=fingerprint, answer=answer, at=ctx.now))
            return answer

    def _new_id(self, prefix: str, digits: int) -> str:
        return spell_id(prefix, self._identity.new_token_hex(), digits)

    def _hash_password(self, command: Command) -> str:
        match command:
            case commands.CreateUser(password=password) | commands.SetPassword(password=password):
                return self._identity.hash_password(check_password(password))
            case commands.SeedInstallation(root_password=password):
                return self._identity.hash_password(password)  # the well-known default is weaker than the rule
            case _:
                return ""


def _fingerprint(command: Command) -> str:
    """A digest to tell commands apart. Secrets are left out: a fast digest of one, stored, could be guessed from."""
    if isinstance(command, commands.CreateUser | commands.SetPassword):
        command = replace(command, password="")
    if isinstance(command, commands.CreateFilesystem | commands.UpdateFilesystem | commands.CreateLink):
        command = replace(command, properties=shown_properties(command.properties))
        return hashlib.sha256(f"{command!r} {sorted(command.properties.items())!r}".encode()).hexdigest()
    return hashlib.sha256(repr(command).encode()).hexdigest()


def _again_if_stale(attempt: Callable[[], _T]) -> _T:
    """Rows may change under a command where several servers share a database; what it decides is decided anew."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except Stale:
            continue
    return attempt()
