"""File, then environment, then flags, become settings, once. Whatever is misspelt is refused by name."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import Resources
from paddleflow.settings import (
    FilesystemSettings,
    LocalSettings,
    NodeSettings,
    PipelineSettings,
    SchedulerSettings,
    ServerSettings,
    Settings,
    StateSettings,
)

_SECTIONS = {
    "server": ServerSettings,
    "state": StateSettings,
    "local": LocalSettings,
    "scheduler": SchedulerSettings,
    "pipelines": PipelineSettings,
    "filesystems": FilesystemSettings,
}
_FLAGS = {
    "host": ("server", "host"),
    "port": ("server", "port"),
    "log_level": ("server", "log_level"),
    "state_dir": ("state", "dir"),
    "database": ("state", "database_url"),
}
"""Flags of ``paddleflow serve`` and the settings they set."""

_SHORT_ENVIRONMENT = {"PADDLEFLOW_STATE_DIR": ("state", "dir"), "PADDLEFLOW_DATABASE": ("state", "database_url")}


def load_settings(environment: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    raw: dict[str, dict[str, object]] = {name: {} for name in _SECTIONS}
    path = flags.get("config") or environment.get("PADDLEFLOW_CONFIG")
    if path:
        _merge_file(raw, Path(str(path)))
    _merge_environment(raw, environment)
    for flag, (section, field_name) in _FLAGS.items():
        if flags.get(flag) is not None:
            raw[section][field_name] = flags[flag]
    settings = Settings(
        server=_build(ServerSettings, raw["server"], "server"),
        state=_build(StateSettings, raw["state"], "state"),
        local=_build(LocalSettings, raw["local"], "local"),
        scheduler=_build(SchedulerSettings, raw["scheduler"], "scheduler"),
        pipelines=_build(PipelineSettings, raw["pipelines"], "pipelines"),
        filesystems=_build(FilesystemSettings, raw["filesystems"], "filesystems"),
    )
    _check(settings)
    return settings


def default_state_dir(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_STATE_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".local/state")
    return Path(base) / "paddleflow"


def _merge_file(raw: dict[str, dict[str, object]], path: Path) -> None:
    from paddleflow.documents import load  # only needed when there is a file

    try:
        document = load(path.read_text()).value
    except OSError as error:
        raise Invalid(f"configuration file {path} cannot be read: {error.strerror}") from error
    except Invalid as error:
        raise Invalid(f"configuration file {path}: {error.message}") from error
    if document is None:
        return  # an empty file says nothing
    if not isinstance(document, dict):
        raise Invalid(f"configuration file {path} must hold sections: {', '.join(_SECTIONS)}")
    for section, values in document.items():
        if section not in _SECTIONS:
            raise Invalid(f"{path}: there is no section {section}; there are {', '.join(_SECTIONS)}")
        if not isinstance(values, dict):
            raise Invalid(f"{path}: section {section} must hold settings")
        raw[section].update(values)


def _merge_environment(raw: dict[str, dict[str, object]], environment: Mapping[str, str]) -> None:
    for section, shape in _SECTIONS.items():
        for item in fields(shape):
            value = environment.get(f"PADDLEFLOW_{section}_{item.name}".upper())
            if value is not None:
                raw[section][item.name] = value
    for name, (section, field_name) in _SHORT_ENVIRONMENT.items():
        if name in environment:
            raw[section][field_name] = environment[name]


def _build(shape: type[Any], values: Mapping[str, object], where: str) -> Any:
    known = typing.get_type_hints(shape)
    for name in values:
        if name not in known:
            raise Invalid(f"{where}: there is no setting {name}; there are {', '.join(known)}")
    for item in fields(shape):
        if item.default is MISSING and item.default_factory is MISSING and item.name not in values:
            raise Invalid(f"{where}: {item.name} is required")
    return shape(**{name: _convert(known[name], value, f"{where}.{name}") for name, value in values.items()})


def _convert(kind: Any, value: object, where: str) -> object:
    """A value from YAML, the environment or a flag, as the type the setting declares."""
    if typing.get_origin(kind) is tuple:
        (element, _) = typing.get_args(kind)
        if not isinstance(value, list):
            raise Invalid(f"{where} must be a list")
        return tuple(_convert(element, item, f"{where}[{index}]") for index, item in enumerate(value))
    if typing.get_origin(kind) is Mapping or isinstance(kind, types.GenericAlias):
        if not isinstance(value, dict):
            raise Invalid(f"{where} must be a mapping")
        return {str(key): str(item) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise Invalid(f"{where} must be a mapping")
        return _build(kind, value, where)
    try:
        return kind(str(value)) if kind in (int, float) else str(value)
    except ValueError:
        raise Invalid(f"{where}: [{value}] is not a number") from None


def _check(settings: Settings) -> None:
    if not 0 <= settings.server.port <= 65535:
        raise Invalid(f"server.port: {settings.server.port} is not between 0 and 65535")
    if settings.server.log_level not in ("debug", "info", "warning", "error"):
        raise Invalid(f"server.log_level: [{settings.server.log_level}] is not debug, info, warning or error")
    if settings.local.images not in ("refuse", "ignore"):
        raise Invalid(f"local.images: [{settings.local.images[:80]}] is not refuse or ignore")
    if not 1024 <= settings.local.first_port <= settings.local.last_port <= 65535:
        first, last = settings.local.first_port, settings.local.last_port
        raise Invalid(f"local.first_port, local.last_port: {first} to {last} is not a range within 1024 to 65535")
    for name, value in (
        ("server.token_life_h", settings.server.token_life_h),
        ("local.log_cap_mib", settings.local.log_cap_mib),
        ("local.sample_every_s", settings.local.sample_every_s),
        ("pipelines.max_loop_items", settings.pipelines.max_loop_items),
        ("pipelines.max_nodes", settings.pipelines.max_nodes),
        ("pipelines.max_parallelism", settings.pipelines.max_parallelism),
        ("pipelines.workers", settings.pipelines.workers),
        ("filesystems.cache_gib", settings.filesystems.cache_gib),
        ("filesystems.mount_idle_s", settings.filesystems.mount_idle_s),
    ):
        if value <= 0:
            raise Invalid(f"{name}: {value} must be above zero")
    if not 0 <= settings.scheduler.settle_s < math.inf:
        raise Invalid(f"scheduler.settle_s: {settings.scheduler.settle_s} must be a number of seconds, 0 or more")
    if settings.filesystems.memory_cache_gib < 0:
        raise Invalid(f"filesystems.memory_cache_gib: {settings.filesystems.memory_cache_gib} must not be negative")
    if settings.filesystems.cache_dir and not settings.filesystems.cache_dir.startswith("/"):
        raise Invalid(f"filesystems.cache_dir: [{settings.filesystems.cache_dir}] is not an absolute path")
    for node in settings.local.nodes:
        _check_node(node)


def _check_node(node: NodeSettings) -> None:
    try:
        Resources.of(cpu=node.cpu, memory=node.memory)
    except Invalid as error:
        raise Invalid(f"local.nodes: node {node.name}: {error.message}") from None
    if node.gpus < 0 or node.count < 1:
        raise Invalid(f"local.nodes: node {node.name}: gpus must not be negative and count must be at least 1")
