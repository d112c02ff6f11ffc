"""Compiling: a pipeline as written and a request become a plan, in which everything static is settled.

References are followed, so a component used twice is two sets of nodes; a typed parameter is its default; options of
the whole are merged into the steps; every dag's nodes are in an order in which they could run. What was not found good
by ``check`` is not compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paddleflow.domain.errors import Invalid
from paddleflow.domain.names import check_sub_path
from paddleflow.domain.runs import NodeKind, Value
from paddleflow.planning.check import checked
from paddleflow.planning.checks_context import Context
from paddleflow.planning.checks_options import expiry_of, paths_of
from paddleflow.planning.checks_structure import in_order
from paddleflow.planning.parameters import PARENT, json_list, plain
from paddleflow.planning.plan import (
    POST_PROCESS,
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
from paddleflow.planning.source import (
    CacheSource,
    DagSource,
    FsSource,
    Limits,
    NodeSource,
    Overrides,
    ScopeSource,
    Source,
    StepSource,
)
from paddleflow.planning.templates import whole

DEFAULT_PARALLELISM: Final = 10
NEVER_EXPIRES: Final = -1


def compile_plan(source: Source, overrides: Overrides, limits: Limits) -> Plan:
    """Raises Invalid with the first problem; ``InvalidArguments`` when the request contradicts the text."""
    return _Compiler(checked(source, overrides, limits)).plan()


class _Compiler:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._source = context.source
        self._off = frozenset(context.disabled)
        self._nodes: dict[str, PlanNode] = {}
        self._scopes = _scopes(self._source.cache.fs_scope)
        self._mounts = tuple(_mount(each) for each in self._source.extra_fs)

    def plan(self) -> Plan:
        source = self._source
        main_fs = _main_fs(source, self._context.overrides)
        top = in_order(source.nodes)
        self._add_all(source.nodes, top, "")
        after = [self._add_last(step) for step in source.post_process.values()]
        parallelism = source.parallelism or 0
        return Plan(
            name=source.name,
            nodes=self._nodes,
            top=top,
            post_process=after[0] if after else "",
            strategy=source.strategy or "fail_fast",
            parallelism=min(parallelism if parallelism > 0 else DEFAULT_PARALLELISM, self._context.limits.parallelism),
            docker_env=source.docker_env,
            disabled=",".join(self._context.disabled),
            main_fs=main_fs,
        )

    def _add_all(self, nodes: Mapping[str, NodeSource], order: tuple[str, ...], parent: str) -> None:
        """Recursion is as deep as dags are, which was checked."""
        prefix = f"{parent}." if parent else ""
        for name in order:
            path = prefix + name
            body = self._context.resolve(nodes[name])
            is_off = path in self._off
            if isinstance(body, DagSource):
                self._add_dag(body, path, parent, is_off=is_off)
            else:
                self._nodes[path] = self._step(body, path, parent, is_off=is_off)

    def _add_last(self, step: StepSource) -> str:
        """The post-process: never reused, whatever the whole pipeline says about caching."""
        body = self._context.resolve(step)
        assert isinstance(body, StepSource)
        path = f"{POST_PROCESS}.{step.name}"
        self._nodes[path] = self._step(body, path, "", is_off=step.name in self._off, is_last=True)
        return path

    def _add_dag(self, dag: DagSource, path: str, parent: str, *, is_off: bool) -> None:
        order = in_order(dag.nodes)
        self._nodes[path] = PlanNode(
            path=path,
            name=dag.name,
            kind=NodeKind.DAG,
            parent=parent,
            deps=tuple(dict.fromkeys(dag.deps)),
            disabled=is_off,
            loop=_loop(dag),
            condition=dag.condition,
            parameters=_parameters(dag),
            inputs=_inputs(dag),
            outputs={name: _artifact(text) for name, text in dag.outputs.items()},
            children=tuple(f"{path}.{name}" for name in order),
        )
        self._add_all(dag.nodes, order, path)

    def _step(self, step: StepSource, path: str, parent: str, *, is_off: bool, is_last: bool = False) -> PlanNode:
        retry = Retry(times=step.retry.times, backoff_s=step.retry.backoff_s) if step.retry else Retry()
        return PlanNode(
            path=path,
            name=step.name,
            kind=NodeKind.STEP,
            parent=parent,
            deps=tuple(dict.fromkeys(step.deps)),
            disabled=is_off,
            loop=_loop(step),
            condition=step.condition,
            parameters=_parameters(step),
            inputs=_inputs(step),
            outputs=dict.fromkeys(step.outputs),
            command=step.command,
            docker_env=step.docker_env or self._source.docker_env,
            env=dict(step.env),
            cache=CachePolicy() if is_last else self._cache(step.cache),
            mounts=tuple(dict.fromkeys((*map(_mount, step.extra_fs), *self._mounts))),
            retry=retry,
            timeout_s=step.timeout_s,
        )

    def _cache(self, own: CacheSource | None) -> CachePolicy:
        """The step's word counts before that of the whole; what is watched adds up."""
        enable = self._source.cache.enable if own is None or own.enable is None else own.enable
        expiry = expiry_of(own)
        if expiry is None:
            expiry = expiry_of(self._source.cache)
        scopes = (*_scopes(own.fs_scope if own else ()), *self._scopes)
        return CachePolicy(
            enable=bool(enable),
            expires_after_s=NEVER_EXPIRES if expiry is None else expiry,
            scopes=tuple(dict.fromkeys(scopes)),
        )


def _main_fs(source: Source, overrides: Overrides) -> Mount | None:
    named = source.main_fs
    asked = overrides.fs_name
    if named is None:
        return Mount(name=asked) if asked else None
    if asked and named.name and asked != named.name:
        raise Invalid(
            f"fsName [{asked}] is not [{named.name}], which the pipeline names as its main_fs:"
            " leave fsName out, or give the same",
            details={"field": "fsName"},
        )
    return Mount(name=named.name or asked, mount_path=named.mount_path, sub_path=_inside(named.sub_path))


def _mount(fs: FsSource) -> Mount:
    return Mount(name=fs.name, mount_path=fs.mount_path, sub_path=_inside(fs.sub_path), read_only=fs.read_only)


def _scopes(written: tuple[ScopeSource, ...]) -> tuple[Scope, ...]:
    return tuple(Scope(fs_name=each.name, path=_inside(path)) for each in written for path in paths_of(each))


def _inside(path: str) -> str:
    """Relative to the root of its filesystem, and spelled in one way."""
    return check_sub_path("path", path, code="InvalidPipeline")


def _parameters(node: NodeSource) -> dict[str, Value]:
    return {name: plain(written) for name, written in node.parameters.items()}


def _inputs(node: NodeSource) -> dict[str, ArtifactRef]:
    """Those of a disabled node may be anything and are never looked at; what is no reference is left out."""
    found = ((name, _artifact(text)) for name, text in node.inputs.items())
    return {name: ref for name, ref in found if ref is not None}


def _artifact(text: str) -> ArtifactRef | None:
    ref = whole(text)
    if ref is None:
        return None
    return ArtifactRef(node="" if ref.node == PARENT else ref.node, name=ref.name)


def _loop(node: NodeSource) -> Loop | None:
    match node.loop:
        case None:
            return None
        case list():
            return LoopItems(items=tuple(node.loop))
    text = str(node.loop)
    ref = whole(text)
    if ref is None:
        items = json_list(text)
        assert isinstance(items, list)
        return LoopItems(items=tuple(items))
    return LoopParameter(name=ref.name) if ref.name in node.parameters else LoopArtifact(name=ref.name)
