"""A pipeline, or a part of one, to the document a server reads; and that document to a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddleflow.pipeline import names
from paddleflow.pipeline.components import DAG, Component, Step
from paddleflow.pipeline.drafts import Draft, draft
from paddleflow.pipeline.emission import Document, emit, emit_children
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.inference import infer, infer_alone
from paddleflow.pipeline.options import CacheOptions, FailureOptions, FSOptions
from paddleflow.pipeline.values import Artifact, Parameter


def compile_graph(root: DAG, env: Mapping[str, str]) -> Document:
    """The nodes of a whole pipeline, by name."""
    top = draft(root)
    infer(top, env)
    return emit_children(top)


def compile_post_process(step: Step, env: Mapping[str, str], taken: Document) -> Document:
    """A step that runs when all else has ended: it can wait for nothing and refer to nothing."""
    title = f"step [{step.name}] in post_process"
    if step.name in taken:
        raise dsl_error(f"{title} has the name of a step or DAG of the pipeline")
    alone = draft(step)
    if alone.waits_for:
        raise dsl_error(f"{title} has deps")
    if alone.condition is not None:
        raise dsl_error(f"{title} should not have condition")
    if alone.loop is not None:
        raise dsl_error(f"{title} should not have loop_argument")
    if getattr(step, "cache_options", None) is not None:
        raise dsl_error(f"{title} should not use cache")
    infer_alone(alone, env)
    if alone.inputs:
        raise dsl_error(f"{title} has input artifacts")
    return {step.name: emit(alone)}


def settle(component: Component, env: Mapping[str, str]) -> Draft:
    """One component in its surroundings, settled: of a pipeline, or just of the components it refers to."""
    outermost = component
    while outermost.parent is not None:
        outermost = outermost.parent
    if isinstance(outermost, DAG):
        top = draft(outermost)
        infer(top, env)
    else:
        top = Draft(component=DAG(names.ROOT), full_name="", parent=None)
        for each in _reachable(component):
            top.children[each.name] = draft(each, top)
        infer(top, env)
    return next(each for each in top.walk() if each.component is component)


def _reachable(component: Component) -> Iterator[Component]:
    """The components that stand beside this one in no DAG at all, and that it refers to."""
    seen, waiting = {id(component)}, [component]
    while waiting:
        one = waiting.pop()
        yield one
        refs: list[object] = [value.ref for value in one.parameters.values()]
        refs += [value.ref for value in one.inputs.values()]
        owners = [ref.component for ref in refs if isinstance(ref, Parameter | Artifact)]
        for other in (*owners, *one.upstreams):
            if isinstance(other, Component) and other.parent is None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def compile_options(
    *,
    docker_env: str | None,
    name: str,
    cache_options: object,
    failure_options: object,
    parallelism: object,
    fs_options: object,
) -> Document:
    """What follows the nodes, in the order it is written."""
    document: Document = {}
    if docker_env:
        document["docker_env"] = docker_env
    document["name"] = name
    for key, kind, options in (
        ("cache", CacheOptions, cache_options),
        ("failure_options", FailureOptions, failure_options),
    ):
        if options is not None:
            document[key] = _compiled(kind, options, name)
    if parallelism is not None:
        document["parallelism"] = check_parallelism(parallelism)
    if fs_options is not None:
        document["fs_options"] = _compiled(FSOptions, fs_options, name)
    return document


def check_parallelism(parallelism: object) -> int:
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise dsl_error(f"parallelism should >= 1, it is [{parallelism}]")
    return parallelism


def _compiled(kind: type[Any], options: object, name: str) -> Document:
    if not isinstance(options, kind):
        raise dsl_error(f"Pipeline[{name}] should be given {kind.__name__}, not [{options}]")
    compiled: Document = options.compile()
    return compiled


def as_text(document: Document) -> str:
    """YAML. The library is loaded only now: building pipelines does not need it."""
    from paddleflow.documents import dump  # noqa: PLC0415

    return dump(document)


def write(document: Document, save_path: str | Path) -> None:
    path = Path(save_path)
    if path.suffix not in (".json", ".yaml", ".yml"):
        raise dsl_error(f"a pipeline is saved as .json, .yaml or .yml, not as [{save_path}]")
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if path.suffix == ".json" else as_text(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
