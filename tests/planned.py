"""Commands for steps that are about something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paddleflow.planning.source import DagSource, NodeSource, Source, StepSource


def with_commands(source: Source) -> Source:
    """Every step that has none runs ``true``: what is judged is the rest."""
    return replace(
        source,
        nodes=_filled(source.nodes),
        components=_filled(source.components),
        post_process={name: _with_command(step) for name, step in source.post_process.items()},
    )


def _filled(nodes: Mapping[str, NodeSource]) -> dict[str, NodeSource]:
    return {
        name: replace(node, nodes=_filled(node.nodes)) if isinstance(node, DagSource) else _with_command(node)
        for name, node in nodes.items()
    }


def _with_command(step: StepSource) -> StepSource:
    return step if step.command or step.reference else replace(step, command="true")
