"""The container of a step in Argo: image, script, environment, and the volumes that stand for filesystems.

The user's command is the source of a script, never an argument: Kubernetes would rewrite ``$(…)`` in one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Final

from paddleflow.exports.argo_texts import ITEM, USER, told
from paddleflow.exports.outline import Outline, refused, system_value
from paddleflow.exports.symbols import Gap, Gapped, Kind, Symbolic, substitute
from paddleflow.planning.plan import Mount, Plan, PlanNode
from paddleflow.planning.templates import MISSING, Missing, Ref

_MOUNTS: Final = "/home/paddleflow/storage/mnt"
_CLAIM: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def script_of(plan: Plan, node: PlanNode) -> dict[str, object]:
    image = node.docker_env or plan.docker_env
    if not image:
        raise refused(node, "it has no docker_env, and in Argo a step is a container: give it or the pipeline an image")
    script: dict[str, object] = {"image": image, "command": ["sh"], "source": _source(node)}
    environment = _environment(node)
    script["env"] = [{"name": name, "value": _unexpanded(text)} for name, text in environment.items()]
    mounts = mounts_of(plan, node)
    work_dir = environment.get("PF_WORK_DIR", "")
    if not work_dir and mounts and environment.get("PF_MOUNT_PATH", "").upper() != "NONE":
        work_dir = _mount_path(mounts[0])
    if work_dir:
        script["workingDir"] = work_dir
    if mounts:
        script["volumeMounts"] = [_volume_mount(node, mount) for mount in mounts]
    return script


def root_of(plan: Plan) -> str:
    """Under which the artifacts of a run lie, as its steps see it; empty: there can be none."""
    if plan.main_fs is None:
        return ""
    return posixpath.join(_mount_path(plan.main_fs), ".pipeline", "{{workflow.name}}", plan.name)


def mounts_of(plan: Plan, node: PlanNode) -> list[Mount]:
    return [*([] if plan.main_fs is None else [plan.main_fs]), *node.mounts]


def volumes_of(outline: Outline) -> list[dict[str, object]]:
    """One for each filesystem that a step mounts."""
    steps = [step for node in outline.kept(outline.plan.top) for step in outline.steps_within(node)]
    steps += [outline.post_process] if outline.post_process is not None else []
    claims = {_claim(step, mount): None for step in steps for mount in mounts_of(outline.plan, step)}
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


def _source(node: PlanNode) -> str:
    """In front of the command, room is made for the outputs: an earlier attempt may have left something there."""
    lines = []
    for name in node.outputs:
        variable = f"PF_OUTPUT_ARTIFACT_{name.upper()}"
        lines.append(f'rm -rf -- "${variable}" && mkdir -p -- "${{{variable}%/*}}" || exit 1')
    lines.append(told(node, _own(node, node.command)))
    return "\n".join(lines)


def _environment(node: PlanNode) -> dict[str, str]:
    given: dict[str, Symbolic] = {name: _own(node, text) for name, text in node.env.items()}
    given |= {name: _own(node, f"{{{{{name}}}}}") for name in ("PF_RUN_ID", "PF_STEP_NAME", USER, ITEM)}
    given |= {f"PF_INPUT_ARTIFACT_{name.upper()}": _gap(name) for name in node.inputs}
    given |= {f"PF_OUTPUT_ARTIFACT_{name.upper()}": _gap(name) for name in node.outputs}
    return {name: told(node, value) for name, value in given.items()}


def _own(node: PlanNode, text: str) -> Symbolic:
    known: Mapping[str, object] = {**node.parameters, **node.inputs, **node.outputs}

    def lookup(ref: Ref) -> Symbolic | Missing:
        if ref.node:
            return MISSING
        if ref.name == ITEM:
            return "" if node.loop is None else _gap(ITEM)
        return _gap(ref.name) if ref.name in known else system_value(ref.name, node)

    return substitute(text, lookup)


def _gap(name: str) -> Gapped:
    return Gapped((Gap(Kind.OWN, name),))


def _unexpanded(text: str) -> str:
    """Kubernetes puts variables into values, and takes two dollars for one."""
    return text.replace("$", "$$") if "$(" in text or "$$" in text else text


def _volume_mount(node: PlanNode, mount: Mount) -> dict[str, object]:
    told_mount: dict[str, object] = {"name": _claim(node, mount), "mountPath": _mount_path(mount)}
    if mount.sub_path:
        told_mount["subPath"] = mount.sub_path
    if mount.read_only:
        told_mount["readOnly"] = True
    return told_mount


def _mount_path(mount: Mount) -> str:
    return mount.mount_path or f"{_MOUNTS}/{mount.name}"


def _claim(node: PlanNode, mount: Mount) -> str:
    name = mount.name.lower().replace("_", "-")
    if not _CLAIM.fullmatch(name):
        raise refused(node, f"the filesystem [{mount.name}] cannot be the name of a persistent volume claim")
    return name
