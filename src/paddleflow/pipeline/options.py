"""Options of pipelines and steps: caching, failure, filesystems, retries. Each compiles to its part of the document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from paddleflow.pipeline.failures import dsl_error

FAIL_FAST = "fail_fast"
FAIL_CONTINUE = "continue"

ItemT = TypeVar("ItemT")


class FSScope:
    """Paths of a filesystem whose contents decide whether a cached result is still good."""

    def __init__(self, name: str, path: str | None = None) -> None:
        self.name = name
        self.path = path

    def compile(self) -> dict[str, object]:
        compiled: dict[str, object] = {"name": _filesystem_name(self.name, "FSScope")}
        if self.path:
            compiled["path"] = _text(self.path, "path", "FSScope")
        return compiled


class CacheOptions:
    """Whether results are reused, for how many seconds (-1: for ever), and what else they depend on."""

    def __init__(
        self, enable: bool = False, fs_scope: Sequence[FSScope] | FSScope | None = None, max_expired_time: int = -1
    ) -> None:
        self.enable = enable
        self.fs_scope = _list_of(FSScope, fs_scope, "fs_scope", "CacheOptions")
        self.max_expired_time = max_expired_time

    def compile(self) -> dict[str, object]:
        if not isinstance(self.enable, bool):
            raise dsl_error(f"[enable] of CacheOptions should be True or False, not [{self.enable}]")
        if isinstance(self.max_expired_time, bool) or not isinstance(self.max_expired_time, int):
            raise dsl_error(f"[max_expired_time] of CacheOptions should be an int, not [{self.max_expired_time}]")
        compiled: dict[str, object] = {"enable": self.enable}
        scopes = _list_of(FSScope, self.fs_scope, "fs_scope", "CacheOptions")
        if scopes:
            compiled["fs_scope"] = [scope.compile() for scope in scopes]
        compiled["max_expired_time"] = self.max_expired_time
        return compiled


class FailureOptions:
    """What happens to the rest when a step fails."""

    def __init__(self, strategy: str = FAIL_FAST) -> None:
        self.strategy = strategy

    def compile(self) -> dict[str, object]:
        if self.strategy not in (FAIL_FAST, FAIL_CONTINUE):
            raise dsl_error(f"failure strategy should be [{FAIL_FAST}] or [{FAIL_CONTINUE}], not [{self.strategy}]")
        return {"strategy": self.strategy}


class MainFS:
    """The filesystem that holds the artifacts of a run."""

    def __init__(self, name: str, sub_path: str | None = None, mount_path: str | None = None) -> None:
        self.name = name
        self.sub_path = sub_path
        self.mount_path = mount_path

    def compile(self) -> dict[str, object]:
        kind = type(self).__name__
        compiled: dict[str, object] = {"name": _filesystem_name(self.name, kind)}
        if self.sub_path:
            compiled["sub_path"] = _text(self.sub_path, "sub_path", kind)
        if self.mount_path:
            compiled["mount_path"] = _text(self.mount_path, "mount_path", kind)
        return compiled


class ExtraFS(MainFS):
    """Another filesystem that steps see."""

    def __init__(
        self, name: str, sub_path: str | None = None, mount_path: str | None = None, read_only: bool = False
    ) -> None:
        super().__init__(name, sub_path, mount_path)
        self.read_only = read_only

    def compile(self) -> dict[str, object]:
        if not isinstance(self.read_only, bool):
            raise dsl_error(f"[read_only] of ExtraFS should be True or False, not [{self.read_only}]")
        return {**super().compile(), "read_only": self.read_only}


class FSOptions:
    """The filesystems of a whole pipeline."""

    def __init__(self, main_fs: MainFS | None = None, extra_fs: Sequence[ExtraFS] | ExtraFS | None = None) -> None:
        self.main_fs = _main_fs(main_fs)
        self.extra_fs = extra_fs_list(extra_fs, "FSOptions")

    def compile(self) -> dict[str, object]:
        compiled: dict[str, object] = {}
        main, extra = _main_fs(self.main_fs), extra_fs_list(self.extra_fs, "FSOptions")
        if main:
            compiled["main_fs"] = main.compile()
        if extra:
            compiled["extra_fs"] = [each.compile() for each in extra]
        return compiled


class RetryOptions:
    """How often a failed step is tried again, and how many seconds it waits before the first time."""

    def __init__(self, times: int, backoff: float | None = None) -> None:
        self.times = times
        self.backoff = backoff

    def compile(self) -> dict[str, object]:
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 0:
            raise dsl_error(f"[times] of RetryOptions should be a whole number of at least 0, not [{self.times}]")
        compiled: dict[str, object] = {"times": self.times}
        if self.backoff is not None:
            if not is_number(self.backoff) or self.backoff < 0:
                raise dsl_error(f"[backoff] of RetryOptions should be seconds of at least 0, not [{self.backoff}]")
            compiled["backoff"] = self.backoff
        return compiled


def extra_fs_list(given: object, where: str) -> list[ExtraFS]:
    return _list_of(ExtraFS, given, "extra_fs", where)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_of(kind: type[ItemT], given: object, field: str, where: str) -> list[ItemT]:
    """One of it counts as a list of one. A list is kept as it is, so that appending to it later has effect."""
    if given is None:
        return []
    found: list[Any] = given if isinstance(given, list) else list(given) if isinstance(given, tuple) else [given]
    wrong = [each for each in found if not isinstance(each, kind)]
    if wrong:
        raise dsl_error(f"[{field}] of {where} should be a list of {kind.__name__}, but holds [{wrong[0]}]")
    return found


def _main_fs(given: MainFS | None) -> MainFS | None:
    if given is not None and (not isinstance(given, MainFS) or isinstance(given, ExtraFS)):
        raise dsl_error(f"[main_fs] of FSOptions should be a MainFS, not [{given}]")
    return given


def _filesystem_name(name: object, kind: str) -> str:
    if not name:
        raise dsl_error(f"[name] of {kind} should not be empty: it names a filesystem")
    return _text(name, "name", kind)


def _text(value: object, field: str, kind: str) -> str:
    if not isinstance(value, str):
        raise dsl_error(f"[{field}] of {kind} should be a text, not [{value}]")
    return value
