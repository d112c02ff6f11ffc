"""A plan as a DAG file for Airflow 3: Python that stands by itself, to be put into the folder of DAGs.

Steps are tasks that run the command in a shell of the worker; dags are task groups. A loop over a step is a mapped
task; over a dag it is a loop of the file, because Airflow maps no tasks inside mapped groups. Artifacts lie in a
directory that all workers share, where they lie in a run of ours. What Airflow does differently without changing
results is told at the top of the file; what it cannot do is refused with the name of the node.
"""

from __future__ import annotations

import ast
from importlib import resources
from typing import Final

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeKind
from paddleflow.exports.airflow_conditions import python_condition
from paddleflow.exports.airflow_notes import notes_of
from paddleflow.exports.airflow_operators import IMPORTS, OPERATORS
from paddleflow.exports.airflow_texts import Lines, Names, expression, long_text, mapping
from paddleflow.exports.outline import Outline, refused
from paddleflow.exports.symbols import Gapped
from paddleflow.planning.plan import ArtifactRef, LoopArtifact, LoopParameter, Plan, PlanNode
from paddleflow.planning.templates import references

_CUT: Final = "# --- copied from here on ---\n"
_CONDITIONS: Final = "# --- for conditions ---\n"
_CONTINUE: Final = "continue"
_LAST: Final = "run_outcome"


def airflow_dag(plan: Plan) -> str:
    """Raises Invalid for what Airflow cannot do."""
    return _Export(plan).file()


class _Scope:
    """What the nodes of one dag have around them, as Python."""

    def __init__(self, place: str, *, items: dict[str, str], inputs: str = "", gate: str = "", first: str = "") -> None:
        self.place = place
        self.items = items
        """Path of a dag around → the variable with its loop item."""
        self.inputs = inputs
        """The variable with the dag's input artifacts."""
        self.gate = gate
        """The variable of the task that knows whether the dag runs."""
        self.first = first
        """The variable of the task that comes before all others of the dag."""


class _Export:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._outline = Outline(plan)
        parts = resources.files("paddleflow.exports").joinpath("airflow_parts.py").read_text(encoding="utf-8")
        always, for_conditions = parts.split(_CUT, 1)[1].split(_CONDITIONS, 1)
        self._parts = [always.strip()]
        if any(node.condition for node in plan.nodes.values()):
            self._parts.append(for_conditions.strip())
        self._names = Names(_names_in("\n".join([IMPORTS, *self._parts, OPERATORS])))
        self._variables: dict[str, str] = {}
        self._conditions = Lines()
        self._lines = Lines()
        for node in plan.nodes.values():
            self._check(node)

    def file(self) -> str:
        plan = self._plan
        self._dag()
        facts = f"PIPELINE = {plan.name!r}\nHAS_FILESYSTEM = {plan.main_fs is not None}"
        pieces = [
            f"{notes_of(self._outline)}\n\n{IMPORTS}\n{facts}",
            *self._parts,
            OPERATORS.rstrip(),
            self._conditions.text().strip(),
            self._lines.text().rstrip(),
        ]
        return "\n\n\n".join(piece for piece in pieces if piece) + "\n"

    def _check(self, node: PlanNode) -> None:
        if node.mounts:
            raise refused(
                node,
                f"it mounts the filesystem [{node.mounts[0].name}], and Airflow mounts nothing; only main_fs can be "
                "exported, as the directory that all workers share",
            )

    # The DAG.

    def _dag(self) -> None:
        plan, lines = self._plan, self._lines
        arguments = {
            "dag_id": repr(plan.name),
            "schedule": "None",
            "catchup": "False",
            "max_active_tasks": str(plan.parallelism),
            "params": "{'artifacts': os.environ.get('PADDLEFLOW_ARTIFACTS', ''), 'user_name': 'root'}",
        }
        if plan.strategy == _CONTINUE:
            arguments["default_args"] = "{'trigger_rule': 'none_failed'}"
        else:
            arguments["fail_fast"] = "True"
        lines.call("with DAG", arguments, " as dag:")
        with lines.deeper():
            top = self._outline.kept(plan.top)
            if not top:
                raise Invalid("the pipeline cannot be exported: all of its nodes are disabled", code="InvalidPipeline")
            self._nodes(top, _Scope(repr(f"{plan.name}.entry_points"), items={}))
            self._ending()

    def _ending(self) -> None:
        """The post-process comes when all else has ended in whatever way; the last task judges the run."""
        lines, last = self._lines, self._outline.post_process
        lines.add("")
        if last is not None:
            self._step(last, _Scope(repr(f"{self._plan.name}.post_process"), items={}))
            name = self._variables[last.path]
            lines.add(f"{name}.set_upstream([task for task in dag.tasks if task is not {name}])")
            lines.add(f"{name}.as_teardown()")
        name = self._names.of(_LAST)
        lines.add(f"{name} = Outcome(task_id={_LAST!r})")
        lines.add(f"{name}.set_upstream([task for task in dag.tasks if task is not {name}])")
        lines.add(f"{name}.as_teardown(on_failure_fail_dagrun=True)")

    def _nodes(self, nodes: list[PlanNode], scope: _Scope) -> None:
        for number, node in enumerate(nodes):
            if number:
                self._lines.add("")
            begins = self._group(node, scope) if node.kind is NodeKind.DAG else self._step(node, scope)
            deps = [self._variables[self._outline.sibling(node, dep).path] for dep in self._outline.deps(node)]
            if not deps and scope.first:
                deps = [scope.first]
            if deps:
                self._lines.add(f"{deps[0] if len(deps) == 1 else '[' + ', '.join(deps) + ']'} >> {begins}")

    # Steps.

    def _step(self, node: PlanNode, scope: _Scope) -> str:
        """The variable of its first task is returned: whatever the step waits for comes before that."""
        name = self._variables[node.path] = self._names.of(node.path)
        arguments = {"task_id": repr(node.name), "name": repr(node.name), "where": scope.place}
        arguments |= self._given(node, scope)
        if node.command:
            arguments["command"] = long_text(node.command)
        if node.env:
            arguments["env"] = mapping({key: repr(text) for key, text in node.env.items()})
        if node.outputs:
            arguments["outputs"] = repr(list(node.outputs))
        arguments |= _limits(node)
        if node.loop is None:
            self._lines.call(f"{name} = Step", arguments)
            return name
        if isinstance(node.loop, LoopArtifact):
            begins = self._items_task(node, scope, node.loop.name)
            self._lines.call(f"{name} = Step.partial", arguments, f".expand(item={begins}.output)")
            return begins
        items = self._items(node, scope)
        self._lines.call(f"{name} = Step.partial", arguments, f".expand(item={items})")
        return name

    def _given(self, node: PlanNode, scope: _Scope) -> dict[str, str]:
        """What a step and the condition of a dag are given alike."""
        arguments = {}
        if node.parameters:
            arguments["parameters"] = self._parameters(node, scope)
        if node.inputs:
            arguments["inputs"] = self._inputs(node, scope)
        if node.condition:
            arguments["condition"] = self._condition(node)
            names = {ref.name: None for ref in references(node.condition) if ref.name in node.inputs}
            if names:
                arguments["reads"] = repr(tuple(names))
        if scope.gate:
            arguments["gate"] = f"{scope.gate}.task_id"
        return arguments

    def _parameters(self, node: PlanNode, scope: _Scope) -> str:
        settled = self._outline.settled[node.path]
        return mapping({name: expression(node, value, scope.items) for name, value in settled.items()})

    def _condition(self, node: PlanNode) -> str:
        name = self._names.of(f"{node.path}_condition")
        self._conditions.add(f"def {name}(known: dict[str, Any]) -> bool:")
        with self._conditions.deeper():
            self._conditions.add(f"return {python_condition(node.condition)}")
        self._conditions.add("")
        self._conditions.add("")
        return name

    # Loops.

    def _items_task(self, node: PlanNode, scope: _Scope, artifact: str) -> str:
        name = self._names.of(f"{node.path}_items")
        inputs = mapping({artifact: self._makers(node, node.inputs[artifact], scope)})
        arguments = {"task_id": repr(f"{node.name}_items"), "name": repr(node.name), "inputs": inputs}
        if scope.gate:
            arguments["gate"] = f"{scope.gate}.task_id"
        self._lines.call(f"{name} = Items", arguments)
        return name

    def _items(self, node: PlanNode, scope: _Scope) -> str:
        """The items as a Python list; one that only the loop around knows may be empty."""
        items = self._outline.items(node)
        if items is not None:
            return repr(items)
        assert isinstance(node.loop, LoopParameter), "the others are known, or read by a task"
        value = self._outline.settled[node.path][node.loop.name]
        if not isinstance(value, Gapped) or value.only is None:
            raise refused(node, "its loop goes over a list that is put together only in a run")
        listed = f"listed({expression(node, value, scope.items)})"
        return f"{listed} or [None]" if node.kind is NodeKind.STEP else listed

    # Dags.

    def _group(self, node: PlanNode, scope: _Scope) -> str:
        lines = self._lines
        name = self._variables[node.path] = self._names.of(node.path)
        if isinstance(node.loop, LoopArtifact):
            raise refused(node, "a dag in a loop over an artifact has no counterpart in Airflow; loop over a step")
        lines.add(f"with TaskGroup({node.name!r}) as {name}:")
        with lines.deeper():
            inner = _Scope(self._place(node, scope), items=dict(scope.items), gate=scope.gate)
            if node.inputs:
                inner.inputs = self._names.of(f"{node.path}_inputs")
                lines.add(f"{inner.inputs} = {self._inputs(node, scope)}")
            if node.outputs:
                made = self._names.of(f"{node.path}_outputs")
                self._variables[f"{node.path} outputs"] = made
                lines.add(f"{made} = {mapping(dict.fromkeys(node.outputs, '[]'))}")
            if node.loop is None:
                self._inside(node, scope, inner)
            else:
                self._loop(node, scope, inner)
        return name

    def _loop(self, node: PlanNode, scope: _Scope, inner: _Scope) -> None:
        lines, path = self._lines, node.path
        begin, seq, item, one = (self._names.of(f"{path}_{word}") for word in ("begin", "seq", "item", "one"))
        lines.add(f"{begin} = EmptyOperator(task_id='loop_begin')")
        lines.add(f"for {seq}, {item} in enumerate({self._items(node, scope)}):")
        inner.items[path] = item
        with lines.deeper():
            where = self._names.of(f"{path}_place")
            lines.add(f"{where} = place({scope.place}, {node.name!r}, {seq})")
            inner.place = where
            lines.add(f"with TaskGroup(f'item_{{{seq}}}') as {one}:")
            with lines.deeper():
                self._inside(node, scope, inner)
            lines.add(f"{begin} >> {one}")

    def _inside(self, node: PlanNode, scope: _Scope, inner: _Scope) -> None:
        if node.condition:
            gate = self._names.of(f"{node.path}_gate")
            arguments = {"task_id": "'run_condition'", "name": repr(node.name), **self._given(node, scope)}
            if node.loop is not None:
                arguments["item"] = inner.items[node.path]
            self._lines.call(f"{gate} = Gate", arguments)
            inner.gate = inner.first = gate
        self._nodes(self._outline.kept(node.children), inner)
        for output, made in node.outputs.items():
            assert made is not None, "a dag says which child makes each of its outputs"
            child = self._outline.child(node, made.node)
            self._lines.add(f"{self._variables[f'{node.path} outputs']}[{output!r}] += {self._made(child, made.name)}")

    def _place(self, node: PlanNode, scope: _Scope) -> str:
        """Of a dag without a loop."""
        try:
            return repr(f"{ast.literal_eval(scope.place)}.{node.name}")
        except ValueError:
            return f"place({scope.place}, {node.name!r}, 0)"

    # Artifacts: who has made them, as Python.

    def _inputs(self, node: PlanNode, scope: _Scope) -> str:
        return mapping({name: self._makers(node, source, scope) for name, source in node.inputs.items()})

    def _makers(self, node: PlanNode, source: ArtifactRef, scope: _Scope) -> str:
        if not source.node:
            return f"{scope.inputs}[{source.name!r}]"
        return self._made(self._outline.sibling(node, source.node), source.name)

    def _made(self, maker: PlanNode, name: str) -> str:
        if maker.path not in self._variables:
            return "[]"  # a loop without items made nothing
        if maker.kind is NodeKind.DAG:
            return f"{self._variables[f'{maker.path} outputs']}[{name!r}]"
        return f"[({self._variables[maker.path]}.task_id, {name!r})]"


def _limits(node: PlanNode) -> dict[str, str]:
    arguments = {}
    if node.retry.times > 0:
        arguments["retries"] = str(node.retry.times)
        arguments["retry_delay"] = f"timedelta(seconds={node.retry.backoff_s!r})"
        arguments["retry_exponential_backoff"] = "2"
        arguments["max_retry_delay"] = "timedelta(minutes=10)"
    if node.timeout_s is not None:
        arguments["execution_timeout"] = f"timedelta(seconds={node.timeout_s!r})"
    return arguments


def _names_in(source: str) -> set[str]:
    """Every name that the file has for itself."""
    names = {"dag", "PIPELINE", "HAS_FILESYSTEM"}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names.update(alias.name for alias in statement.names)
        else:
            names.update(each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
    return names
