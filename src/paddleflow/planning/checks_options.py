"""Rules about images, caching, failure and filesystems: the options of the whole and of single steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from paddleflow.domain.errors import Invalid
from paddleflow.domain.names import check_mount_path, check_sub_path
from paddleflow.planning.checks_context import Context, Problem
from paddleflow.planning.source import CacheSource, FsSource, Path, ScopeSource

STRATEGIES: Final = ("fail_fast", "continue")
_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,18}")


def expiry_of(cache: CacheSource | None) -> int | None:
    """Seconds until a result is too old; -1: never. None: not written. What is no number was refused before."""
    if cache is None or not cache.max_expired_time:
        return None
    return int(cache.max_expired_time)


def paths_of(scope: ScopeSource) -> tuple[str, ...]:
    """One entry may name several paths, with commas; without any, all of the filesystem."""
    return tuple(part.strip() for part in scope.path.split(",") if part.strip()) or ("",)


def images(ctx: Context) -> Iterator[Problem]:
    """No image at all is fine: not every runtime needs one."""
    written: list[tuple[str, Path]] = [(ctx.source.docker_env, ("docker_env",))]
    written += [(step.docker_env, (*step.at, "docker_env")) for _, step in ctx.steps]
    for image, at in written:
        if image.endswith(".tar"):
            yield ctx.problem("image as tar file is not supported for now", at)


def cache_expiry(ctx: Context) -> Iterator[Problem]:
    whole = ctx.source.cache.max_expired_time
    if whole and not _SECONDS.fullmatch(whole):
        yield ctx.problem(f"MaxExpiredTime[{whole}] of cache not correct", ("cache", "max_expired_time"))
    for place, step in ctx.steps:
        own = step.cache.max_expired_time if step.cache else None
        if own and not _SECONDS.fullmatch(own):
            yield ctx.problem(
                f"MaxExpiredTime[{own}] of cache in step[{place.name}] not correct",
                (*step.at, "cache", "max_expired_time"),
            )


def failure_strategy(ctx: Context) -> Iterator[Problem]:
    strategy = ctx.source.strategy
    if strategy and strategy not in STRATEGIES:
        yield ctx.problem(
            f"failure strategy should be [fail_fast] or [continue], setted by [{strategy}]",
            ("failure_options", "strategy"),
        )


def main_filesystem(ctx: Context) -> Iterator[Problem]:
    main = ctx.source.main_fs
    if main is None:
        return
    at = ("fs_options", "main_fs")
    if main.read_only:
        yield ctx.problem("[read_only] in [main_fs] must be false", (*at, "read_only"))
    if not main.name and not ctx.overrides.fs_name:
        yield ctx.problem("[name] in [extra_fs] or [main_fs] must not be empty", at)
    for message in _wrong_mount(main, "main_fs"):
        yield ctx.problem(message, at)


def extra_filesystems(ctx: Context) -> Iterator[Problem]:
    lists: list[tuple[tuple[FsSource, ...], Path]] = [(ctx.source.extra_fs, ("fs_options", "extra_fs"))]
    lists += [(step.extra_fs, (*step.at, "extra_fs")) for _, step in ctx.steps]
    for mounts, at in lists:
        for number, mount in enumerate(mounts):
            if not mount.name:
                yield ctx.problem("[name] in [extra_fs] or [main_fs] must not be empty", (*at, number))
            for message in _wrong_mount(mount, "extra_fs"):
                yield ctx.problem(message, (*at, number))


def _wrong_mount(mount: FsSource, kind: str) -> Iterator[str]:
    if mount.sub_path.startswith("/"):
        yield f"[sub_path] in [{kind}] should not start with '/'"
    elif _is_bad_path(mount.sub_path):
        yield f"[sub_path] in [{kind}] should not contain '..'"
    if mount.mount_path:
        try:
            check_mount_path("mount_path", mount.mount_path, code="InvalidPipeline")
        except Invalid:
            yield f"[mount_path] in [{kind}] should be an absolute path without '..', not the root directory"


def cache_scopes(ctx: Context) -> Iterator[Problem]:
    """What is watched must be mounted: the main filesystem, those of the whole, and for a step its own."""
    source = ctx.source
    everywhere = {mount.name for mount in source.extra_fs} | {ctx.overrides.fs_name}
    if source.main_fs is not None:
        everywhere.add(source.main_fs.name)
    lists: list[tuple[tuple[ScopeSource, ...], set[str], Path]] = [
        (source.cache.fs_scope, everywhere, ("cache", "fs_scope"))
    ]
    lists += [
        (step.cache.fs_scope, {mount.name for mount in step.extra_fs}, (*step.at, "cache", "fs_scope"))
        for _, step in ctx.steps
        if step.cache is not None
    ]
    for scopes, own, at in lists:
        for number, scope in enumerate(scopes):
            if not scope.name:
                yield ctx.problem("[fs_name] in fs_scope must not be empty", (*at, number))
            elif scope.name not in own and scope.name not in everywhere:
                yield ctx.problem(
                    f"fs_name [{scope.name}] in fs_scope must also be in [extra_fs] or [main_fs]", (*at, number)
                )
            if any(_is_bad_path(path) for path in paths_of(scope)):
                yield ctx.problem("[path] in fs_scope should not contain '..'", (*at, number))


def _is_bad_path(path: str) -> bool:
    try:
        check_sub_path("sub_path", path, code="InvalidPipeline")
    except Invalid:
        return True
    return False
