"""A plan as an Argo Workflow: the manifest as plain values.

Dags are dag templates, steps are script templates, and what a template needs it is handed as input parameters, paths of
artifacts included. Artifacts lie where they lie in a run of ours: on the main filesystem, here a persistent volume
claim of its name, in a directory of the run. What Argo does differently without changing results is told in the
annotations; what it cannot do is refused with the name of the node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeKind, Value
from paddleflow.exports.argo_conditions import Later, NoCounterpart, Sort, sort_of, when
from paddleflow.exports.argo_notes import notes_of
from paddleflow.exports.argo_scripts import root_of, script_of, volumes_of
from paddleflow.exports.argo_texts import CONTENT, ITEM, PLACE, USER, Names, told
from paddleflow.exports.outline import Outline, refused, system_value
from paddleflow.exports.symbols import Gapped, Kind
from paddleflow.planning.plan import LoopArtifact, LoopParameter, Plan, PlanNode
from paddleflow.planning.templates import Missing, Ref, references, spell

Manifest: TypeAlias = dict[str, object]

_ENTRY: Final = "entry-points"
_EXIT: Final = "post-process"
_CONTINUE: Final = "continue"
_DEFAULT_USER: Final = "root"


def argo_workflow(plan: Plan) -> Manifest:
    """Raises Invalid for what Argo cannot do."""
    return _Export(plan).workflow()


class _Export:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._outline = Outline(plan)
        self._names = Names((_ENTRY, _EXIT))
        self._templates: list[Manifest] = []
        self._made: dict[str, dict[str, None]] = {}
        """Path of a node → the output artifacts whose content somebody must be told."""
        self._told: dict[str, dict[str, None]] = {}
        """Path of a dag → the input artifacts whose content it is told."""
        self._listed: set[str] = set()
        """Dags whose loop items are themselves looped over inside."""
        for node in plan.nodes.values():
            self._note_contents(node)
            self._note_nested_loop(node)

    def workflow(self) -> Manifest:
        plan = self._plan
        top = self._outline.kept(plan.top)
        if not top:
            raise Invalid("the pipeline cannot be exported: all of its nodes are disabled", code="InvalidPipeline")
        self._add_dag(_ENTRY, top, root_of(plan))
        last = self._outline.post_process
        if last is not None:
            self._add_dag(_EXIT, [last], f"{root_of(plan)}/post_process")
        spec: Manifest = {
            "entrypoint": _ENTRY,
            "arguments": {"parameters": [{"name": USER, "value": _DEFAULT_USER}]},
            "parallelism": plan.parallelism,
            "templates": self._templates,
        }
        if last is not None:
            spec["onExit"] = _EXIT
        volumes = volumes_of(self._outline)
        if volumes:
            spec["volumes"] = volumes
        annotations = notes_of(self._outline, [str(volume["name"]) for volume in volumes])
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": f"{_object_name(plan.name)}-", "annotations": annotations},
            "spec": spec,
        }

    # Templates.

    def _add_dag(self, name: str, nodes: list[PlanNode], place: str, dag: PlanNode | None = None) -> None:
        template: Manifest = {"name": name}
        self._templates.append(template)
        if dag is not None:
            template |= _inputs(self._arguments(dag, ""))
        template["dag"] = {
            "failFast": self._plan.strategy != _CONTINUE,
            "tasks": [self._task(node, place) for node in nodes],
        }
        if dag is not None and dag.path in self._made:
            template["outputs"] = {"parameters": [self._passed_on(dag, made) for made in self._made[dag.path]]}

    def _task(self, node: PlanNode, place: str) -> Manifest:
        template = self._names.of(node.path)
        task: Manifest = {"name": node.name, "template": template}
        deps = self._outline.deps(node)
        if deps:
            task["dependencies"] = deps
        arguments = self._arguments(node, place)
        if arguments:
            task["arguments"] = {"parameters": [{"name": name, "value": text} for name, text in arguments.items()]}
        if node.condition:
            task["when"] = self._when(node)
        if node.loop is not None:
            task |= self._loop(node)
        if node.kind is NodeKind.DAG:
            inside = f"{{{{inputs.parameters.{PLACE}}}}}" if PLACE in arguments else ""
            self._add_dag(template, self._outline.kept(node.children), inside, node)
        else:
            self._templates.append(self._step(node, template, arguments))
        return task

    def _step(self, node: PlanNode, name: str, arguments: Mapping[str, str]) -> Manifest:
        template: Manifest = {"name": name, **_inputs(arguments)}
        made = self._made.get(node.path, {})
        if made:
            template["outputs"] = {
                "parameters": [{"name": art, "valueFrom": {"path": f"{{{{inputs.parameters.{art}}}}}"}} for art in made]
            }
        if node.retry.times > 0:
            template["retryStrategy"] = {
                "limit": str(node.retry.times),
                "retryPolicy": "OnFailure",
                "backoff": {"duration": f"{max(0, round(node.retry.backoff_s))}s", "factor": "2", "cap": "10m"},
            }
        if node.timeout_s is not None:
            template["activeDeadlineSeconds"] = max(1, round(node.timeout_s))
        template["script"] = script_of(self._plan, node)
        return template

    def _passed_on(self, dag: PlanNode, name: str) -> Manifest:
        made = dag.outputs[name]
        assert made is not None, "a dag says which child makes each of its outputs"
        return {
            "name": name,
            "valueFrom": {"parameter": f"{{{{tasks.{made.node}.outputs.parameters.{made.name}}}}}"},
        }

    # What a template is handed.

    def _arguments(self, node: PlanNode, place: str) -> dict[str, str]:
        """Name → value, as written in the dag around. Names of parameters and artifacts never clash."""
        given = {name: told(node, value) for name, value in self._outline.parameters[node.path].items()}
        for name, source in node.inputs.items():
            if source.node:
                maker = self._outline.sibling(node, source.node)
                given[name] = ",".join(self._paths(node, maker, source.name, place))
            else:
                given[name] = f"{{{{inputs.parameters.{source.name}}}}}"
        home = f"{place}/{node.name}" + (".{{item.seq}}" if self._outline.items(node) is not None else "")
        if node.kind is NodeKind.STEP:
            given |= {name: f"{home}/{name}" for name in node.outputs}
        elif any(step.outputs for step in self._outline.steps_within(node)):
            given[PLACE] = home
        if node.loop is not None:
            self._check_numbered(node)
            given[ITEM] = self._item(node)
        for name in self._told.get(node.path, {}):
            given[CONTENT + name] = self._content(node, name)
        return given

    def _paths(self, reader: PlanNode, node: PlanNode, name: str, place: str) -> list[str]:
        """Where the output of a node lies, one path for each item of its loops."""
        homes = [f"{place}/{node.name}"]
        if node.loop is not None:
            items = self._outline.items(node)
            if items is None:
                raise refused(
                    reader, f"it reads [{name}] of [{node.path}], whose loop has a length that Argo learns too late"
                )
            homes = [f"{place}/{node.name}.{seq}" for seq in range(len(items))]
        if node.kind is NodeKind.STEP:
            return [f"{home}/{name}" for home in homes]
        made = node.outputs[name]
        assert made is not None, "a dag says which child makes each of its outputs"
        child = self._outline.child(node, made.node)
        return [path for home in homes for path in self._paths(reader, child, made.name, home)]

    # Loops.

    def _loop(self, node: PlanNode) -> Manifest:
        items = self._outline.items(node)
        if items is not None:
            return {"withItems": [{"seq": seq, "item": self._item_text(node, item)} for seq, item in enumerate(items)]}
        if isinstance(node.loop, LoopArtifact):
            return {"withParam": self._content(node, node.loop.name)}
        assert isinstance(node.loop, LoopParameter), "items are known"
        value = self._outline.settled[node.path][node.loop.name]
        if not isinstance(value, Gapped) or value.only is None:
            raise refused(node, f"its loop goes over [{node.loop.name}], a list that is put together only in a run")
        return {"withParam": told(node, self._outline.parameters[node.path][node.loop.name])}

    def _item(self, node: PlanNode) -> str:
        return "{{item}}" if self._outline.items(node) is None else "{{item.item}}"

    def _item_text(self, node: PlanNode, item: Value) -> str:
        is_list = isinstance(item, list) and node.path in self._listed
        return told(node, json.dumps(item) if is_list else item)

    def _check_numbered(self, node: PlanNode) -> None:
        if self._outline.items(node) is None and any(step.outputs for step in self._outline.steps_within(node)):
            raise refused(
                node,
                "it writes artifacts in a loop whose items are known only in a run; Argo does not number those, so "
                "that one would overwrite the other",
            )

    def _note_nested_loop(self, node: PlanNode) -> None:
        if isinstance(node.loop, LoopParameter):
            value = self._outline.settled[node.path].get(node.loop.name)
            if isinstance(value, Gapped) and value.only is not None and value.only.kind is Kind.ITEM:
                self._listed.add(value.only.of)

    # Contents of artifacts, which loops and conditions depend on.

    def _content(self, node: PlanNode, name: str) -> str:
        source = node.inputs[name]
        if source.node:
            return f"{{{{tasks.{source.node}.outputs.parameters.{source.name}}}}}"
        return f"{{{{inputs.parameters.{CONTENT}{source.name}}}}}"

    def _note_contents(self, node: PlanNode) -> None:
        names = [ref.name for ref in references(node.condition) if not ref.node and ref.name in node.inputs]
        if isinstance(node.loop, LoopArtifact):
            names.append(node.loop.name)
        for name in names:
            self._note_content(node, name)

    def _note_content(self, node: PlanNode, name: str) -> None:
        source = node.inputs[name]
        if source.node:
            self._note_made(node, self._outline.sibling(node, source.node), source.name)
        else:
            parent = self._plan.nodes[node.parent]
            self._told.setdefault(parent.path, {})[source.name] = None
            self._note_content(parent, source.name)

    def _note_made(self, reader: PlanNode, maker: PlanNode, name: str) -> None:
        if maker.loop is not None:
            raise refused(
                reader,
                f"its loop or condition depends on what [{maker.path}] writes in a loop; Argo reads one file at a time",
            )
        self._made.setdefault(maker.path, {})[name] = None
        made = maker.outputs[name]
        if made is not None:
            self._note_made(reader, self._outline.child(maker, made.node), made.name)

    # Conditions.

    def _when(self, node: PlanNode) -> str:
        try:
            return when(node.condition, lambda ref: self._operand(node, ref))
        except NoCounterpart as error:
            raise refused(node, f"condition[{node.condition[:200]}]: {error}") from error

    def _operand(self, node: PlanNode, ref: Ref) -> Value | Later:
        if ref.name in node.inputs:
            return Later(self._content(node, ref.name))
        if ref.name == ITEM:
            return "" if node.loop is None else Later(self._item(node), self._sort_of_items(node))
        if ref.name == "PF_STEP_NAME":
            return node.name
        if ref.name in ("PF_RUN_ID", USER):
            value = system_value(ref.name, node)
            assert not isinstance(value, Missing), "both are system parameters"
            return Later(told(node, value), Sort.TEXT)
        return self._parameter(node, ref.name)

    def _parameter(self, node: PlanNode, name: str) -> Value | Later:
        value = self._outline.settled[node.path][name]
        if not isinstance(value, Gapped):
            return value
        sort = Sort.TEXT
        if value.only is not None and value.only.kind is Kind.ITEM:
            sort = self._sort_of_items(self._plan.nodes[value.only.of])
        return Later(told(node, self._outline.parameters[node.path][name]), sort)

    def _sort_of_items(self, node: PlanNode) -> Sort:
        items = self._outline.items(node)
        sorts = {sort_of(item) for item in items or ()}
        if items and any(mark in spell(item) for item in items for mark in "'\"\\"):
            raise NoCounterpart("an item of the loop has a quote or a backslash in it")
        return sorts.pop() if len(sorts) == 1 else Sort.UNCLEAR


def _inputs(arguments: Mapping[str, str]) -> Manifest:
    return {"inputs": {"parameters": [{"name": name} for name in arguments]}} if arguments else {}


def _object_name(name: str) -> str:
    """The beginning of the names Kubernetes gives to the workflows."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-") or "pipeline"
