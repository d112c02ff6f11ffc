"""The JSON form of a pipeline, camelCase and with a few words more, turned into the plain form of the YAML.

Only names are translated, and what is JSON's alone is spread out: queue, flavour, job type and environment of the whole
pipeline become environment defaults of every step. Unknown keys are refused here, where the names are those the writer
used; types are left to the parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paddleflow.planning.parse_places import Place
from paddleflow.planning.source import Limits

_WORKFLOW: Final = {
    "name": "name",
    "dockerEnv": "docker_env",
    "entryPoints": "entry_points",
    "components": "components",
    "postProcess": "post_process",
    "cache": "cache",
    "parallelism": "parallelism",
    "disabled": "disabled",
    "failureOptions": "failure_options",
    "fsOptions": "fs_options",
}
_REQUEST: Final = ("username", "description")
"""Beside the pipeline in the same document; whoever takes the request reads them."""
_KNOBS: Final = {"flavour": "PF_JOB_FLAVOUR", "queue": "PF_JOB_QUEUE_NAME", "jobType": "PF_JOB_TYPE"}

_NODE: Final = {
    "name": "name",
    "type": "type",
    "deps": "deps",
    "parameters": "parameters",
    "artifacts": "artifacts",
    "loopArgument": "loop_argument",
    "condition": "condition",
}
_DAG: Final = {**_NODE, "entryPoints": "entry_points"}
_STEP: Final = {
    **_NODE,
    "command": "command",
    "dockerEnv": "docker_env",
    "env": "env",
    "cache": "cache",
    "reference": "reference",
    "extraFS": "extra_fs",
    "retry": "retry",
    "timeout": "timeout",
}
_CACHE: Final = {"enable": "enable", "maxExpiredTime": "max_expired_time", "fsScope": "fs_scope"}
_FS_OPTIONS: Final = {"mainFS": "main_fs", "extraFS": "extra_fs"}
_FS: Final = {"name": "name", "mountPath": "mount_path", "subPath": "sub_path", "readOnly": "read_only"}
_FS_OWNER: Final = "[mainFS] or each mount info in [extraFS]"


def from_json_form(document: Mapping[str, object], limits: Limits | None = None) -> dict[str, object]:
    """What ``parse`` takes. Raises Invalid for keys that nobody knows."""
    place = Place(document, (), {})
    keys = place.fields("workflow", (*_WORKFLOW, *_REQUEST, *_KNOBS, "env"), "workflow")
    env = _knobs(keys, "of workflow")
    if "env" in keys:
        env |= {key: item.value for key, item in keys["env"].mapping("[env] of workflow").items()}
    levels = (limits or Limits()).depth
    plain: dict[str, object] = {}
    for key, name in _WORKFLOW.items():
        if key not in keys:
            continue
        item = keys[key]
        if key in ("entryPoints", "components", "postProcess"):
            plain[name] = _nodes(item.introduced(f"parse [{key}] failed, error: "), env, levels)
        elif key == "cache":
            plain[name] = _cache(item)
        elif key == "fsOptions":
            plain[name] = _fs_options(item)
        else:
            plain[name] = item.value
    return plain


def _knobs(keys: Mapping[str, Place], owner: str) -> dict[str, object]:
    return {name: keys[key].text(f"[{key}] {owner}") for key, name in _KNOBS.items() if key in keys}


def _renamed(place: Place, names: Mapping[str, str], owner: str) -> dict[str, object]:
    places = place.fields(owner, names, owner)
    return {names[key]: item.value for key, item in places.items()}


def _nodes(place: Place, env: Mapping[str, object], levels: int) -> object:
    if not isinstance(place.value, Mapping):
        return place.value
    return {name: _node(name, item, env, levels) for name, item in place.mapping("entryPoints").items()}


def _node(name: str, place: Place, env: Mapping[str, object], levels: int) -> object:
    if not isinstance(place.value, Mapping):
        return place.value
    if "entryPoints" not in place.value:
        return _step(place.introduced(f"parse step[{name}] failed, "), env)
    place = place.introduced(f"parse dag[{name}] failed, ")
    if levels == 0:
        place.fail("dags are nested too deep inside one another")
    plain = _renamed(place, _DAG, "dag")
    return {**plain, "entry_points": _nodes(place.inner("entryPoints", plain["entry_points"]), env, levels - 1)}


def _step(place: Place, env: Mapping[str, object]) -> object:
    keys = place.fields("step", (*_STEP, *_KNOBS), "step")
    plain = {name: keys[key].value for key, name in _STEP.items() if key in keys}
    knobs = _knobs(keys, "of step")
    # A step that refers to a component has its environment from there, and may have none of its own.
    inherited = {} if "reference" in plain else env
    own = plain.get("env", {})
    if isinstance(own, Mapping) and (inherited or knobs):
        plain["env"] = {**inherited, **knobs, **own}
    if "cache" in keys:
        plain["cache"] = _cache(keys["cache"])
    if "extraFS" in keys:
        plain["extra_fs"] = _extra_fs(keys["extraFS"])
    return plain


def _cache(place: Place) -> object:
    return _renamed(place, _CACHE, "[cache]") if isinstance(place.value, Mapping) else place.value


def _fs_options(place: Place) -> object:
    if not isinstance(place.value, Mapping):
        return place.value
    keys = place.fields("[fsOptions]", _FS_OPTIONS, "[fsOptions]")
    plain: dict[str, object] = {}
    if "mainFS" in keys:
        plain["main_fs"] = _fs(keys["mainFS"])
    if "extraFS" in keys:
        plain["extra_fs"] = _extra_fs(keys["extraFS"])
    return plain


def _extra_fs(place: Place) -> object:
    return [_fs(item) for item in place.items("[extraFS]")] if isinstance(place.value, list) else place.value


def _fs(place: Place) -> object:
    return _renamed(place, _FS, _FS_OWNER) if isinstance(place.value, Mapping) else place.value
