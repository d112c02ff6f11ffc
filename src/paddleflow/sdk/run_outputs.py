"""What the steps of a run have made, by the names of the steps instead of by paths.

A run that reuses results, or keeps those of the run it retries, has outputs that lie in the directory of another run:
they are outputs of both. Nothing is asked of the server here; a run as ``show_run`` gives it says all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from paddleflow.sdk.errors import InvalidError, NotFoundError
from paddleflow.sdk.run_views import DagInfo, JobInfo, RunInfo, View
from paddleflow.sdk.words import SUCCEEDED

_ITEM = re.compile(r"\[\d+\]")
_RUN_IN_PATH = -4
"""``[<sub_path>/].pipeline/<run>/<pipeline>/<step>/<artifact>``, counted from the end."""
_LISTED = 20


@dataclass(frozen=True)
class OutputInfo:
    """An output artifact of a step that has succeeded."""

    step: str
    """The key of the step: ``train``, or ``sub[2].train[5]`` for one item of a loop."""
    artifact_name: str
    fs_name: str
    artifact_path: str
    create_time: str
    """Empty where the step was not run because the result of another run was reused."""
    made_by: str
    """The run that made it: this one, or that whose result was reused or kept."""

    @property
    def name(self) -> str:
        """``STEP.ARTIFACT``."""
        return f"{self.step}.{self.artifact_name}"


def outputs_of(run: RunInfo) -> list[OutputInfo]:
    """In the order of the pipeline; those of a loop in the order of its items."""
    return [
        OutputInfo(
            step=step.key,
            artifact_name=name,
            fs_name=run.fs_name,
            artifact_path=path,
            create_time="" if step.cache_run_id else step.end_time,
            made_by=step.cache_run_id or _maker(path) or run.run_id,
        )
        for step in _views(run)
        if isinstance(step, JobInfo) and step.status == SUCCEEDED
        for name, path in _outputs(step)
    ]


def find_output(run: RunInfo, wanted: str) -> OutputInfo:
    """The one output called ``STEP.ARTIFACT``; what cannot be told apart is refused with the names that can.

    STEP is a key, or a full name if the step ran once; or a dag, for an artifact the dag gives out.
    """
    outputs = outputs_of(run)
    exact = [one for one in outputs if one.name == wanted]
    found = exact or [one for one in outputs if _ITEM.sub("", one.name) == wanted] or _given_out(run, wanted, outputs)
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidError(
            "AmbiguousArtifact",
            f"{run.run_id} has made {len(found)} artifacts [{wanted}]; choose one of {_listed(found)}",
        )
    has = f"it has {_listed(outputs)}" if outputs else "none of its steps has made any"
    raise NotFoundError("RecordNotFound", f"{run.run_id} has no artifact [{wanted}]; {has}")


def _given_out(run: RunInfo, wanted: str, outputs: Iterable[OutputInfo]) -> list[OutputInfo]:
    """The outputs of steps that an output of a dag stands for; several where the step inside is a loop."""
    texts = [
        path
        for dag in _views(run)
        if isinstance(dag, DagInfo)
        for name, path in _outputs(dag)
        if wanted in (f"{dag.key}.{name}", f"{_ITEM.sub('', dag.key)}.{name}")
    ]
    return [one for one in outputs if any(f",{one.artifact_path}," in f",{text}," for text in texts)]


def _views(run: RunInfo) -> Iterator[View]:
    yield from _all(run.runtime)
    yield from run.post_process.values()


def _all(views: Mapping[str, list[View]]) -> Iterator[View]:
    for listed in views.values():
        for view in listed:
            yield view
            if isinstance(view, DagInfo):
                yield from _all(view.entry_points)


def _outputs(view: View) -> list[tuple[str, str]]:
    given: Mapping[str, str] = view.artifacts.get("output") or {}
    return [(name, path) for name, path in given.items() if path]


def _maker(path: str) -> str:
    parts = path.split("/")
    return parts[_RUN_IN_PATH] if len(parts) >= -_RUN_IN_PATH else ""


def _listed(outputs: list[OutputInfo]) -> str:
    more = f" and {len(outputs) - _LISTED} more" if len(outputs) > _LISTED else ""
    return ", ".join(one.name for one in outputs[:_LISTED]) + more
