"""Pipelines as DAG files for Airflow: what the files say, and that their copy of the language says what ours says.

Whether Airflow does what they say is the business of ``tests/exports``.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.exports import airflow_parts as parts
from paddleflow.exports.airflow import airflow_dag
from paddleflow.exports.airflow_conditions import python_condition
from paddleflow.planning import paths, templates
from paddleflow.planning.conditions import evaluate
from tests.exports.pipelines import ALL, plan_of

HEAD = "name: demo\nfs_options: {main_fs: {name: work}}\n"


def exported(text: str) -> str:
    source = airflow_dag(plan_of(text))
    compile(source, "exported.py", "exec")
    return source


def calls(source: str, head: str) -> list[dict[str, ast.expr]]:
    """The arguments of every call of a class, or of its ``partial``."""
    return [
        {word.arg: word.value for word in node.keywords if word.arg}
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (head, f"{head}.partial")
    ]


def step(source: str, task_id: str) -> dict[str, Any]:
    """The arguments of one step that are literals."""
    (found,) = [each for each in calls(source, "Step") if ast.literal_eval(each["task_id"]) == task_id]
    literals = {}
    for name, value in found.items():
        try:
            literals[name] = ast.literal_eval(value)
        except ValueError:
            literals[name] = ast.unparse(value)
    return literals


@pytest.mark.parametrize("name", ALL)
def test_files_are_python(name: str) -> None:
    assert calls(exported(ALL[name]), "DAG")


def test_a_step() -> None:
    source = exported(
        HEAD
        + """
entry_points:
  one:
    parameters: {p: 0.5, where: "{{PF_RUN_ID}}/{{PF_STEP_NAME}}"}
    env: {A: "{{p}}"}
    command: |
      echo {{p}}
      echo "three"
    artifacts: {output: [out]}
    retry: {times: 3, backoff: 5}
    timeout: 90
"""
    )
    one = step(source, "one")
    assert one["parameters"] == {"p": 0.5, "where": "{{PF_RUN_ID}}/one"}
    assert one["command"] == 'echo {{p}}\necho "three"\n'
    assert (one["env"], one["outputs"], one["where"]) == ({"A": "{{p}}"}, ["out"], "demo.entry_points")
    assert (one["retries"], one["retry_delay"]) == (3, "timedelta(seconds=5.0)")
    assert one["execution_timeout"] == "timedelta(seconds=90.0)"


def test_whatever_users_write_stays_a_literal() -> None:
    nasty = "'''\"\"\"\\n{% raw %}{{- ti }}\\'; import os; os.abort() #"
    quoted = "'" + nasty.replace("'", "''") + "'"
    source = exported(
        f"""{HEAD}
entry_points:
  lambda:
    parameters: {{p: {quoted}}}
    command: {quoted}
    env: {{E: {quoted}}}
    condition: "'os.abort()' == {{{{p}}}}"
    loop_argument: [{quoted}]
"""
    )
    one = step(source, "lambda")
    assert one["command"] == nasty
    assert one["parameters"] == {"p": nasty}
    assert one["env"] == {"E": nasty}
    called = {ast.unparse(call.func) for call in ast.walk(ast.parse(source)) if isinstance(call, ast.Call)}
    assert "os.abort" not in called


def test_names_of_variables_hide_nothing() -> None:
    names = ["read", "dag", "Step", "os", "list", "for", "a-b", "json", "place", "run-outcome"]
    source = exported(
        HEAD + "entry_points:\n" + "".join(f"  {name}: {{command: x, condition: a == a}}\n" for name in names)
    )
    tree = ast.parse(source)
    assigned = [
        target.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]
    defined = [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    steps = [
        name for name in assigned if name.startswith(("read", "dag", "Step", "os", "list", "for", "json", "place"))
    ]
    assert not {"read", "dag", "Step", "os", "list", "json", "place"} & set(steps)
    assert len(defined) == len(set(defined))
    assert len(calls(source, "Step")) == len(names)


def test_strategies() -> None:
    text = HEAD + "entry_points: {a: {command: a}}\nparallelism: 7\n"
    (fast,) = calls(exported(text), "DAG")
    assert ast.literal_eval(fast["fail_fast"]) is True
    assert ast.literal_eval(fast["max_active_tasks"]) == 7
    (slow,) = calls(exported(text + "failure_options: {strategy: continue}"), "DAG")
    assert "fail_fast" not in slow
    assert ast.literal_eval(slow["default_args"]) == {"trigger_rule": "none_failed"}


def test_disabled_nodes_are_left_out_and_their_place_is_closed() -> None:
    source = exported(
        HEAD
        + """
entry_points:
  a: {command: a}
  b: {command: b, deps: a}
  c: {deps: b, entry_points: {x: {command: x}}}
  d: {command: d, deps: c}
disabled: b,c.x
"""
    )
    assert "a >> d" in source
    assert len(calls(source, "Step")) == 2


def test_what_is_only_for_conditions_is_only_with_conditions() -> None:
    without = exported(HEAD + "entry_points: {a: {command: a}}")
    assert "def ordered" not in without
    assert "def ordered" in exported(HEAD + "entry_points: {a: {command: a, condition: 1 > 0}}")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("entry_points: {a: {command: a, extra_fs: [{name: other}]}}", r"step\[a\].*mounts the filesystem \[other\]"),
        ("entry_points: {a: {command: a, env: {PF_JOB_TYPE: distributed, PF_JOB_FRAMEWORK: ray}}}", "PF_JOB_TYPE"),
        ("entry_points: {a: {command: a}}\ndisabled: a", "all of its nodes are disabled"),
        (
            """entry_points:
  a: {command: a, artifacts: {output: [x]}}
  b: {deps: a, loop_argument: "{{x}}", artifacts: {input: {x: "{{a.x}}"}}, entry_points: {c: {command: c}}}""",
            r"dag\[b\].*no counterpart in Airflow",
        ),
    ],
)
def test_what_airflow_cannot_do_is_refused_by_name(body: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        exported(HEAD + body)


# The copy of the language.

WORDS = st.text(alphabet="abcxyz '\"\\{}$0159.-+e\n", max_size=12)
VALUES = st.recursive(
    WORDS | st.integers(-(10**12), 10**12) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_values_are_spelt_alike(value: Any) -> None:
    assert parts.spell(value) == templates.spell(value)


@given(
    st.lists(st.sampled_from(["{{a}}", "{{ b }}", "{{c}}", "{{a.b}}", "{{", "}}", " text ", "{{d-}}"])), VALUES, VALUES
)
def test_templates_are_filled_alike(pieces: list[str], a: Any, b: Any) -> None:
    known = {"a": a, "b": b}
    text = "".join(pieces)
    ours = templates.fill(text, lambda ref: templates.MISSING if ref.node else known.get(ref.name, templates.MISSING))
    assert parts.fill(text, known) == ours


OPERANDS = st.sampled_from(
    ["{{a}}", "{{b}}", "3", "0.5", "-2", "word", "'quo ted'", "true", "'{{a}}'", "v{{b}}", "0x10"]
)
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "&&", "||", "=~"])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    left, right, other = draw(OPERANDS), draw(OPERANDS), draw(OPERANDS)
    simple = f"{left} {draw(SIGNS)} {right}"
    shape = draw(
        st.sampled_from(
            ["{s}", "!({s})", "({s}) && {o} == {l}", "{o} in ({l}, {r})", "{s} ? {o} : true", "({s}) ?? {o}"]
        )
    )
    return shape.format(s=simple, l=left, r=right, o=other)


@given(
    conditions(), st.one_of(st.integers(0, 9), WORDS, st.sampled_from(["3", " 0.5 ", "true", ""])), st.integers(0, 9)
)
def test_conditions_hold_alike(condition: str, a: Any, b: int) -> None:
    known: dict[str, Any] = {"a": a, "b": b}
    try:
        ours: object = evaluate(condition, lambda ref: known[ref.name])
    except Invalid:
        ours = "refused"
    try:
        # The expression is made by the code under test from its own grammar.
        theirs: object = eval(python_condition(condition), vars(parts) | {"known": known})
    except (TypeError, ValueError, ArithmeticError, re.error):
        theirs = "refused"
    assert ours in (theirs, "refused")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        (r"a\z", "a", True),
        (r"[$]", "$", True),
        (r"\$", "$", True),
        ("a$|b", "xb", True),
    ],
)
def test_patterns_end_where_ours_end(pattern: str, text: str, expected: bool) -> None:
    assert parts.matches(text, pattern) is expected


def test_artifacts_lie_where_ours_lie() -> None:
    plan = plan_of(ALL["everything"])
    where = paths.runtime_name(paths.runtime_name(paths.runtime_root(plan), "search", 1), "fit", 2)
    copied = parts.place(parts.place("everything.entry_points", "search", 1), "fit", 2)
    assert copied == where
    ours = paths.artifact_path(plan, "run-000001", "fit", 2, where, "model")  # type: ignore[arg-type]
    assert parts.artifact_path(".pipeline/run-000001/everything", "fit", 2, copied, "model") == ours


def test_numbers_too_large_are_not_read_as_texts() -> None:
    assert parts.read("1e5") == 100000.0
    assert math.isinf(parts.read("1e999"))
