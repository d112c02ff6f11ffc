"""Plans as text: versioned JSON that a later release can still read.

Compact: what has its usual value is left out. The same plan is always the same text. A field that is new in a later
release must have a usual value, so that plans stored before it are complete; whatever cannot be added so is a new
version, and this module then reads both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeKind
from paddleflow.planning.plan import (
    ArtifactRef,
    CachePolicy,
    Loop,
    LoopArtifact,
    LoopItems,
    LoopParameter,
    Mount,
    Plan,
    PlanNode,
    Retry,
    Scope,
)

KNOWN_VERSIONS: Final = (1,)

_EMPTY: Final[tuple[object, ...]] = ("", None, False, [], {})
_NUMBERS: Final = (int, float)
"""Zero equals False and is something all the same."""

Json = dict[str, Any]


def dump_plan(plan: Plan) -> str:
    written: Json = {
        "version": plan.version,
        "name": plan.name,
        "top": list(plan.top),
        "post_process": plan.post_process,
        "strategy": plan.strategy,
        "parallelism": plan.parallelism,
        "docker_env": plan.docker_env,
        "disabled": plan.disabled,
        "main_fs": _mount(plan.main_fs) if plan.main_fs else None,
        "nodes": [_node(node) for node in plan.nodes.values()],
    }
    return json.dumps(written, separators=(",", ":"))


def load_plan(text: str) -> Plan:
    """Raises Invalid for a text that is no plan, or one of a version this release does not know."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the stored plan is not JSON: {error}", code="InvalidPipeline") from error
    version = written.get("version") if isinstance(written, dict) else None
    if version not in KNOWN_VERSIONS:
        known = ", ".join(map(str, KNOWN_VERSIONS))
        raise Invalid(f"the stored plan is of version [{version}], this release knows: {known}", code="InvalidPipeline")
    try:
        return _read_plan(written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Invalid(f"the stored plan is damaged: {error!r}", code="InvalidPipeline") from error


def _slim(written: Json) -> Json:
    """Without what is empty: that is what these fields are when nothing is written."""
    return {key: value for key, value in written.items() if value not in _EMPTY or type(value) in _NUMBERS}


def _mount(mount: Mount) -> Json:
    return _slim(
        {
            "name": mount.name,
            "mount_path": mount.mount_path,
            "sub_path": mount.sub_path,
            "read_only": mount.read_only,
        }
    )


def _node(node: PlanNode) -> Json:
    return _slim(
        {
            "path": node.path,
            "name": node.name,
            "kind": node.kind.value,
            "parent": node.parent,
            "deps": list(node.deps),
            "disabled": node.disabled,
            "loop": _loop(node.loop),
            "condition": node.condition,
            "parameters": dict(node.parameters),
            "inputs": {name: _ref(ref) for name, ref in node.inputs.items()},
            "outputs": {name: ref and _ref(ref) for name, ref in node.outputs.items()},
            "children": list(node.children),
            "command": node.command,
            "docker_env": node.docker_env,
            "env": dict(node.env),
            "cache": _cache(node.cache),
            "mounts": [_mount(mount) for mount in node.mounts],
            "retry": None if node.retry == Retry() else {"times": node.retry.times, "backoff_s": node.retry.backoff_s},
            "timeout_s": node.timeout_s,
        }
    )


def _ref(ref: ArtifactRef) -> list[str]:
    return [ref.node, ref.name]


def _loop(loop: Loop | None) -> Json | None:
    match loop:
        case LoopItems(items=items):
            return {"items": list(items)}
        case LoopParameter(name=name):
            return {"parameter": name}
        case LoopArtifact(name=name):
            return {"artifact": name}
        case None:
            return None


def _cache(policy: CachePolicy) -> Json | None:
    if policy == CachePolicy():
        return None
    return {
        "enable": policy.enable,
        "expires_after_s": policy.expires_after_s,
        "scopes": [[scope.fs_name, scope.path] for scope in policy.scopes],
    }


def _read_plan(written: Json) -> Plan:
    nodes = [_read_node(each) for each in written["nodes"]]
    main_fs = written["main_fs"]
    return Plan(
        version=written["version"],
        name=written["name"],
        nodes={node.path: node for node in nodes},
        top=tuple(written["top"]),
        post_process=written["post_process"],
        strategy=written["strategy"],
        parallelism=written["parallelism"],
        docker_env=written["docker_env"],
        disabled=written["disabled"],
        main_fs=None if main_fs is None else _read_mount(main_fs),
    )


def _read_mount(written: Json) -> Mount:
    return Mount(
        name=written.get("name", ""),
        mount_path=written.get("mount_path", ""),
        sub_path=written.get("sub_path", ""),
        read_only=written.get("read_only", False),
    )


def _read_node(written: Json) -> PlanNode:
    read = written.get
    retry = read("retry")
    outputs: Mapping[str, list[str] | None] = read("outputs", {})
    return PlanNode(
        path=written["path"],
        name=written["name"],
        kind=NodeKind(written["kind"]),
        parent=read("parent", ""),
        deps=tuple(read("deps", ())),
        disabled=read("disabled", False),
        loop=_read_loop(read("loop")),
        condition=read("condition", ""),
        parameters=read("parameters", {}),
        inputs={name: _read_ref(ref) for name, ref in read("inputs", {}).items()},
        outputs={name: None if ref is None else _read_ref(ref) for name, ref in outputs.items()},
        children=tuple(read("children", ())),
        command=read("command", ""),
        docker_env=read("docker_env", ""),
        env=read("env", {}),
        cache=_read_cache(read("cache")),
        mounts=tuple(_read_mount(mount) for mount in read("mounts", ())),
        retry=Retry(times=retry["times"], backoff_s=retry["backoff_s"]) if retry else Retry(),
        timeout_s=read("timeout_s"),
    )


def _read_ref(written: list[str]) -> ArtifactRef:
    node, name = written
    return ArtifactRef(node=node, name=name)


def _read_loop(written: Json | None) -> Loop | None:
    match written:
        case None:
            return None
        case {"items": items}:
            return LoopItems(items=tuple(items))
        case {"parameter": name}:
            return LoopParameter(name=name)
        case {"artifact": name}:
            return LoopArtifact(name=name)
    raise ValueError(f"no such loop: {written}")


def _read_cache(written: Json | None) -> CachePolicy:
    if written is None:
        return CachePolicy()
    return CachePolicy(
        enable=written["enable"],
        expires_after_s=written["expires_after_s"],
        scopes=tuple(Scope(fs_name=fs_name, path=path) for fs_name, path in written["scopes"]),
    )
