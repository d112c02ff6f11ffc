"""A plan as people read it before it runs: its steps drawn in the order they will come, each with what is special."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paddleflow.cli.lanes import draw_lanes
from paddleflow.cli.output import display_width
from paddleflow.planning.plan import LoopArtifact, LoopItems, LoopParameter

if TYPE_CHECKING:
    from paddleflow.planning.plan import Plan, PlanNode

PLAN_HEADERS = ["node", "type", "deps", "loop", "condition", "docker env", "cache", "retry", "timeout", "command"]
_COMMAND_WIDTH = 60


def plan_rows(plan: Plan) -> list[list[object]]:
    """One row for each node, in the order of the plan."""
    return [
        [
            node.path,
            str(node.kind),
            ",".join(node.deps),
            _loop(node),
            node.condition,
            node.docker_env,
            "yes" if node.cache.enable else "",
            node.retry.times or "",
            "" if node.timeout_s is None else f"{node.timeout_s:g}s",
            node.command,
        ]
        for node in plan.nodes.values()
    ]


def draw_plan(plan: Plan) -> str:
    """The pipeline in one line, then its nodes; a dag's own nodes are set under it."""
    steps = sum(not node.children and node.kind == "step" for node in plan.nodes.values())
    parts = [
        f"{steps} step{'' if steps == 1 else 's'}",
        f"at most {plan.parallelism} at a time",
        f"failure strategy {plan.strategy}",
        f"main filesystem {plan.main_fs.name}" if plan.main_fs is not None else "no main filesystem",
    ]
    if plan.docker_env:
        parts.append(f"image {plan.docker_env}")
    rows = list(_drawn(plan, plan.top, ""))
    if plan.post_process:
        post = plan.nodes[plan.post_process]
        rows.append(("and at the end, whatever happened:", ""))
        rows.append((f"● {post.name}", _notes(plan, post)))
    width = max((display_width(left) for left, notes in rows if notes), default=0)
    lines = (left + " " * (width - display_width(left)) + "  " + notes if notes else left for left, notes in rows)
    return "\n".join([f"{plan.name or 'pipeline'}: {', '.join(parts)}", *lines])


def _drawn(plan: Plan, paths: Sequence[str], margin: str) -> Iterator[tuple[str, str]]:
    nodes = {plan.nodes[path].name: plan.nodes[path] for path in paths}
    lanes = draw_lanes(list(nodes), {name: node.deps for name, node in nodes.items()})
    width = max((len(row) for row, _ in lanes.values()), default=0)
    for name, (row, below) in lanes.items():
        yield f"{margin}{row.ljust(width)} {name}", _notes(plan, nodes[name])
        yield from _drawn(plan, nodes[name].children, f"{margin}{below.ljust(width)}   ")


def _notes(plan: Plan, node: PlanNode) -> str:
    notes = [
        "disabled" if node.disabled else "",
        f"loop: {_loop(node)}" if node.loop is not None else "",
        f"if {node.condition}" if node.condition else "",
        "cached" if node.cache.enable else "",
        f"{node.retry.times} retries" if node.retry.times else "",
        f"timeout {node.timeout_s:g}s" if node.timeout_s is not None else "",
        f"image {node.docker_env}" if node.docker_env not in ("", plan.docker_env) else "",
        f"$ {_shortened(node.command)}" if node.command else "",
    ]
    return " · ".join(filter(None, notes))


def _loop(node: PlanNode) -> str:
    match node.loop:
        case None:
            return ""
        case LoopItems(items=items):
            return f"{len(items)} item{'' if len(items) == 1 else 's'}"
        case LoopParameter(name=name):
            return f"items of the parameter {name}"
        case LoopArtifact(name=name):
            return f"items of the artifact {name}"


def _shortened(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND_WIDTH else line[: _COMMAND_WIDTH - 1] + "…"
