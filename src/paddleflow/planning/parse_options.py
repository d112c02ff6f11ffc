"""Parsing what both a pipeline and a step may have: cache, filesystems; and how a step is tried again."""

from __future__ import annotations

from paddleflow.planning.parse_places import Place
from paddleflow.planning.source import CacheSource, FsSource, RetrySource, ScopeSource

_MOST_RETRIES = 100


def parse_cache(place: Place, name: str, introduction: str) -> CacheSource:
    keys = place.fields(name, ("enable", "max_expired_time", "fs_scope"), "[cache]", introduction)
    expiry = keys["max_expired_time"].value if "max_expired_time" in keys else None
    if "max_expired_time" in keys and (isinstance(expiry, bool) or not isinstance(expiry, str | int)):
        keys["max_expired_time"].fail("[cache.max_expired_time] should be string/int64 type")
    return CacheSource(
        enable=keys["enable"].boolean("[cache.enable]") if "enable" in keys else None,
        max_expired_time=None if expiry is None else str(expiry),
        fs_scope=tuple(_parse_scope(item) for item in keys["fs_scope"].items("[cache.fs_scope]"))
        if "fs_scope" in keys
        else (),
    )


def _parse_scope(place: Place) -> ScopeSource:
    introduction = "parse fs_scope in [cache] failed, error: "
    keys = place.fields("each info in [fs_scope]", ("name", "path"), "[fs_scope]", introduction)
    return ScopeSource(
        name=keys["name"].text("[name]") if "name" in keys else "",
        path=keys["path"].text("[path]") if "path" in keys else "",
    )


def parse_fs(place: Place, name: str, introduction: str) -> FsSource:
    known = ("name", "mount_path", "sub_path", "read_only")
    keys = place.fields(name, known, "[main_fs] or each mount info in [extra_fs]", introduction)
    texts = {key: keys[key].text(f"[{key}]") for key in ("name", "mount_path", "sub_path") if key in keys}
    return FsSource(
        name=texts.get("name", ""),
        mount_path=texts.get("mount_path", ""),
        sub_path=texts.get("sub_path", ""),
        read_only=keys["read_only"].boolean("[read_only]") if "read_only" in keys else False,
    )


def parse_extra_fs(place: Place, name: str, owner: str) -> tuple[FsSource, ...]:
    """``name`` is how complaints call the list, ``owner`` what it is in: ``step``, ``[fs_options]``."""
    return tuple(
        parse_fs(item, "each mount info in [extra_fs]", f"parse [extra_fs] in {owner} failed, error: ")
        for item in place.items(name)
    )


def parse_retry(place: Place) -> RetrySource:
    keys = place.fields("[retry] in step", ("times", "backoff"), "[retry] of step")
    if "times" not in keys:
        place.fail("[retry.times] in step is missing: how often may the step be tried again?")
    times = keys["times"].integer("[retry.times] in step")
    if not 0 <= times <= _MOST_RETRIES:
        keys["times"].fail(f"[retry.times] in step should be between 0 and {_MOST_RETRIES}")
    if "backoff" not in keys:
        return RetrySource(times=times)
    backoff_s = keys["backoff"].number("[retry.backoff] in step")
    if backoff_s < 0:
        keys["backoff"].fail("[retry.backoff] in step should not be negative: it is in seconds")
    return RetrySource(times=times, backoff_s=backoff_s)


def parse_timeout(place: Place) -> float:
    timeout_s = place.number("[timeout] in step")
    if timeout_s <= 0:
        place.fail("[timeout] in step should be above zero: it is in seconds")
    return timeout_s
