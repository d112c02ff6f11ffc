"""How values are written in an Argo manifest: gaps become Argo's own templates, and nothing else may look like one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from paddleflow.exports.outline import refused
from paddleflow.exports.symbols import Gap, Kind, Symbolic, parts_of
from paddleflow.planning.plan import PlanNode

USER: Final = "PF_USER_NAME"
ITEM: Final = "PF_LOOP_ARGUMENT"
PLACE: Final = "PF_PLACE"
"""Of a dag: the directory under which its steps write."""
CONTENT: Final = "PF_CONTENT_"
"""In front of an artifact's name: what is in it."""


def told(node: PlanNode, value: Symbolic) -> str:
    """The value as text of a manifest, inside the template of the dag or step it is written in."""
    return "".join(_gap(part) if isinstance(part, Gap) else plain(node, part) for part in parts_of(value))


def plain(node: PlanNode, text: str) -> str:
    if "{{" in text:
        start = text.index("{{")
        raise refused(node, f"it has the text [{text[start : start + 40]}], which Argo takes for a template of its own")
    return text


def _gap(gap: Gap) -> str:
    match gap.kind:
        case Kind.RUN_ID:
            return "{{workflow.name}}"
        case Kind.USER_NAME:
            return f"{{{{workflow.parameters.{USER}}}}}"
        case Kind.ITEM:
            return f"{{{{inputs.parameters.{ITEM}}}}}"
        case Kind.PARENT | Kind.OWN:
            return f"{{{{inputs.parameters.{gap.of}}}}}"
        case _:
            assert_never(gap.kind)


class Names:
    """Names of templates: the paths of nodes, without dots. Two that become the same get a number."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def of(self, path: str) -> str:
        wanted = path.replace(".", "-").replace("_", "-")
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}-{number}"
        self._taken.add(name)
        return name
