"""Commands about users and grants."""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.errors import Denied, Duplicate, Invalid, NotFound
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import ROOT, FilesystemId, GrantId, QueueName, UserName
from paddleflow.domain.names import check_user_name
from paddleflow.domain.users import Grant, ResourceType, User
from paddleflow.engine.context import Answer, Context


def create_user(ctx: Context, command: commands.CreateUser) -> Answer:
    name = UserName(check_user_name(command.name))
    if ctx.uow.users.find(name) is not None or name.lower() == ROOT:
        raise Duplicate("The user name already exists", code="UserNameDuplicated", details={"name": name})
    ctx.uow.users.add(
        User(
            name=name,
            password_hash=ctx.password_hash,
            # Beyond every epoch of a deleted user of the same name, whose tokens must not open this account.
            token_epoch=int(ctx.now.timestamp() * 1000),
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.USER_CREATED, name)
    return {"username": name}


def set_password(ctx: Context, command: commands.SetPassword) -> Answer:
    user = _user(ctx, command.name)
    ctx.uow.users.save(
        replace(user, password_hash=ctx.password_hash, token_epoch=user.token_epoch + 1, updated_at=ctx.now)
    )
    ctx.emit(EventKind.USER_UPDATED, user.name, user.name)
    return {}


def delete_user(ctx: Context, command: commands.DeleteUser) -> Answer:
    if command.name == ROOT:
        raise Denied("Access denied", code="AccessDenied")
    user = _user(ctx, command.name)
    ctx.uow.grants.delete_of_user(user.name)
    ctx.uow.users.delete(user.name)
    ctx.emit(EventKind.USER_DELETED, user.name)
    return {}


def create_grant(ctx: Context, command: commands.CreateGrant) -> Answer:
    resource_type = _resource_type(command.resource_type)
    user = _user(ctx, command.user)
    if user.name == ROOT:
        raise Invalid("root needs no grant, it may use everything", code="GrantRootActionNotSupport")
    _check_target(ctx, resource_type, command.resource_id)
    if ctx.uow.grants.find(user.name, resource_type, command.resource_id) is not None:
        raise Duplicate("This user already have the grant of the resource", code="GrantAlreadyExist")
    grant = ctx.uow.grants.add(
        Grant(
            id=GrantId(ctx.new_id("grant", 8)),
            user=user.name,
            resource_type=resource_type,
            resource_id=command.resource_id,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.GRANT_CREATED, grant.id, user.name, resource=command.resource_id)
    return {"grantID": grant.id}


def delete_grant(ctx: Context, command: commands.DeleteGrant) -> Answer:
    resource_type = _resource_type(command.resource_type)
    _user(ctx, command.user)
    grant = ctx.uow.grants.find(command.user, resource_type, command.resource_id)
    if grant is None:
        raise NotFound("Grant not found. check the user and resource", code="GrantNotFound")
    ctx.uow.grants.delete(grant.user, resource_type, grant.resource_id)
    ctx.emit(EventKind.GRANT_DELETED, grant.id, grant.user, resource=grant.resource_id)
    return {}


def _user(ctx: Context, name: UserName) -> User:
    user = ctx.uow.users.find(name)
    if user is None:
        raise NotFound(f"user[{name[:80]}] does not exist", code="UserNotExist")
    return user


def _resource_type(text: str) -> ResourceType:
    try:
        return ResourceType(text)
    except ValueError:
        raise Invalid(
            f"resourceType[{text[:80]}] is not one of queue, user, fs", code="GrantResourceTypeNotFound"
        ) from None


def _check_target(ctx: Context, resource_type: ResourceType, resource_id: str) -> None:
    match resource_type:
        case ResourceType.QUEUE:
            if ctx.uow.queues.find(QueueName(resource_id)) is None:
                raise NotFound("QueueName does not exist", code="QueueNameNotFound")
        case ResourceType.USER:
            _user(ctx, UserName(resource_id))
        case ResourceType.FILESYSTEM:
            if ctx.uow.filesystems.find(FilesystemId(resource_id)) is None:
                raise NotFound(f"fs[{resource_id[:80]}] does not exist", code="FileSystemNotExist")
