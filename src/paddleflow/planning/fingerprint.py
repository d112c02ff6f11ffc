"""What a step's result depends on, taken apart, so that a result can be reused and a miss explained.

The identity is what the step *is*: known before anything is read. Its own artifacts are left as templates in the
command, and contents are digested from outside (``moves.Prepare``): where a file happens to lie does not matter, what
is in it does. Environment values are never shown: they may be secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from paddleflow.domain.runs import Fingerprint, Part, Value
from paddleflow.planning.plan import Mount, Plan, PlanNode
from paddleflow.planning.templates import spell

_SHOWN = 200
"""Characters of a value that are kept for people."""


def identity(
    plan: Plan, node: PlanNode, *, command: str, env: Mapping[str, str], parameters: Mapping[str, Value], item: Value
) -> dict[str, Part]:
    """``command`` still has the templates of the step's own artifacts; ``env`` is the step's own, filled in.

    The loop item counts although it is a system parameter: a program can read it from the environment.
    """
    docker_env = node.docker_env or plan.docker_env
    main_fs = [] if plan.main_fs is None else [_mount(plan.main_fs)]
    return {
        "command": _shown(command),
        "docker_env": _shown(docker_env),
        **{f"env.{name}": _hidden(value) for name, value in sorted(env.items())},
        **{f"parameters.{name}": _shown(value) for name, value in sorted(parameters.items())},
        **({} if node.loop is None else {"loop_argument": _shown(item)}),
        "inputs": _hidden(sorted(node.inputs)),
        "outputs": _hidden(sorted(node.outputs)),
        "main_fs": _hidden(main_fs),
        "extra_fs": _hidden([_mount(mount) for mount in node.mounts]),
    }


def seal(identity: Mapping[str, Part], contents: Mapping[str, str]) -> Fingerprint:
    """``contents``: by names such as ``inputs.data`` and ``fs_scope.main:/src``, a digest each."""
    return Fingerprint(
        first=_digest({name: part.digest for name, part in identity.items()}),
        second=_digest(dict(contents)),
        parts={**identity, **{name: Part(digest=digest) for name, digest in contents.items()}},
    )


def changed(a: Fingerprint, b: Fingerprint) -> tuple[str, ...]:
    """The names of the parts that differ, those that only one of the two has included."""
    names = sorted(a.parts.keys() | b.parts.keys())
    return tuple(name for name in names if _digest_in(a, name) != _digest_in(b, name))


def _digest_in(fingerprint: Fingerprint, name: str) -> str | None:
    part = fingerprint.parts.get(name)
    return None if part is None else part.digest


def _mount(mount: Mount) -> list[str | bool]:
    return [mount.name, mount.mount_path, mount.sub_path, mount.read_only]


def _shown(value: Value) -> Part:
    """By its text, which is all that reaches a step: a 10 in the file and a "10" on the command line are the same."""
    text = spell(value)
    return Part(digest=_digest(text), shown=text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _hidden(value: object) -> Part:
    return Part(digest=_digest(value))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
