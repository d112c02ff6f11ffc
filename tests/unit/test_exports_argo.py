"""Pipelines as Argo Workflows: what each part of the language becomes, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.exports.argo import argo_workflow
from paddleflow.exports.argo_conditions import Later, NoCounterpart, Sort, when
from tests.exports.pipelines import EVERYTHING, plan_of

HEAD = "name: demo\ndocker_env: 'busybox:1'\nfs_options: {main_fs: {name: Work_1, mount_path: /data}}\n"


def exported(text: str) -> dict[str, Any]:
    return argo_workflow(plan_of(text))


def template(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in manifest["spec"]["templates"] if each["name"] == name]
    return dict(found)


def task(manifest: dict[str, Any], name: str, dag: str = "entry-points") -> dict[str, Any]:
    (found,) = [each for each in template(manifest, dag)["dag"]["tasks"] if each["name"] == name]
    return dict(found)


def arguments(task: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in task["arguments"]["parameters"]}


def environment(manifest: dict[str, Any], name: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in template(manifest, name)["script"]["env"]}


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def test_a_step_is_a_script() -> None:
    manifest = exported(
        HEAD
        + """
entry_points:
  one:
    parameters: {p: 0.00001, where: "{{PF_RUN_ID}} of {{PF_USER_NAME}}"}
    env: {A: "{{p}} costs $(none) $$"}
    command: "echo {{p}} {{where}} {{PF_STEP_NAME}} {{out}} $(date)"
    artifacts: {output: [out]}
    retry: {times: 3, backoff: 5}
    timeout: 90
"""
    )
    assert arguments(task(manifest, "one")) == {
        "p": "0.00001",
        "where": "{{workflow.name}} of {{workflow.parameters.PF_USER_NAME}}",
        "out": "/data/.pipeline/{{workflow.name}}/demo/one/out",
    }
    step = template(manifest, "one")
    assert step["script"]["source"].splitlines() == [
        'rm -rf -- "$PF_OUTPUT_ARTIFACT_OUT" && mkdir -p -- "${PF_OUTPUT_ARTIFACT_OUT%/*}" || exit 1',
        "echo {{inputs.parameters.p}} {{inputs.parameters.where}} one {{inputs.parameters.out}} $(date)",
    ]
    assert environment(manifest, "one")["A"] == "{{inputs.parameters.p}} costs $$(none) $$$$"
    assert step["retryStrategy"]["limit"] == "3"
    assert step["retryStrategy"]["backoff"] == {"duration": "5s", "factor": "2", "cap": "10m"}
    assert step["activeDeadlineSeconds"] == 90
    assert step["script"]["workingDir"] == "/data"
    assert step["script"]["volumeMounts"] == [{"name": "work-1", "mountPath": "/data"}]
    assert manifest["spec"]["volumes"] == [{"name": "work-1", "persistentVolumeClaim": {"claimName": "work-1"}}]


def test_every_parameter_used_is_an_input_and_every_input_is_given() -> None:
    manifest = exported(EVERYTHING)
    templates = {each["name"]: each for each in manifest["spec"]["templates"]}
    for each in templates.values():
        declared = {one["name"] for one in each.get("inputs", {}).get("parameters", [])}
        used = {name for text in texts(each) for name in re.findall(r"\{\{inputs\.parameters\.(\w+)\}\}", text)}
        assert used <= declared, each["name"]
        tasks = {one["name"]: one for one in each.get("dag", {}).get("tasks", [])}
        for one in tasks.values():
            given = {arg["name"] for arg in one.get("arguments", {}).get("parameters", [])}
            wanted = templates[one["template"]].get("inputs", {}).get("parameters", [])
            assert given == {name["name"] for name in wanted}
            assert set(one.get("dependencies", [])) <= tasks.keys()
        for name, output in re.findall(r"\{\{tasks\.([\w-]+)\.outputs\.parameters\.(\w+)\}\}", str(list(texts(each)))):
            made = templates[tasks[name]["template"]]["outputs"]["parameters"]
            assert output in {one["name"] for one in made}
    assert {"entry-points", "post-process", "search-fit", "post-process-last"} <= templates.keys()
    assert "off" not in templates
    assert manifest["spec"]["onExit"] == "post-process"
    assert manifest["spec"]["parallelism"] == 4


def test_loops_and_paths() -> None:
    manifest = exported(EVERYTHING)
    root = "/home/paddleflow/storage/mnt/work/.pipeline/{{workflow.name}}/everything"
    square = task(manifest, "square")
    assert square["withItems"] == [{"seq": 0, "item": "1"}, {"seq": 1, "item": "2.5"}, {"seq": 2, "item": "[3 4]"}]
    assert arguments(square)["result"] == f"{root}/square.{{{{item.seq}}}}/result"
    assert arguments(task(manifest, "sum"))["results"] == ",".join(f"{root}/square.{seq}/result" for seq in range(3))
    assert arguments(task(manifest, "search"))["PF_PLACE"] == f"{root}/search.{{{{item.seq}}}}"
    fit = arguments(task(manifest, "fit", "search"))
    assert fit["label"] == "{{inputs.parameters.base}}/{{inputs.parameters.PF_LOOP_ARGUMENT}}"
    assert fit["rate"] == "{{inputs.parameters.PF_LOOP_ARGUMENT}}"
    assert fit["note"] == "{{inputs.parameters.note}}"
    assert fit["model"] == "{{inputs.parameters.PF_PLACE}}/fit.{{item.seq}}/model"
    assert arguments(task(manifest, "publish"))["best"] == f"{root}/search.0/pick/model,{root}/search.1/pick/model"


def test_disabled_nodes_are_left_out_and_their_place_is_closed() -> None:
    manifest = exported(EVERYTHING)
    assert task(manifest, "after-off")["dependencies"] == ["make"]
    manifest = exported(
        HEAD
        + """
entry_points:
  a: {command: a}
  b: {command: b, deps: a}
  c: {deps: b, entry_points: {x: {command: x}}}
  d: {command: d, deps: c}
  e: {command: e, deps: "d,a", loop_argument: []}
  f: {command: f, deps: e}
disabled: b,c.x
"""
    )
    assert "dependencies" not in task(manifest, "a")
    assert task(manifest, "d")["dependencies"] == ["a"]
    assert task(manifest, "f")["dependencies"] == ["d", "a"]


def test_an_artifact_loop_is_a_parameter_of_its_content() -> None:
    manifest = exported(
        HEAD
        + """
entry_points:
  list: {command: "echo [1] > {{out}}", artifacts: {output: [out]}}
  sub:
    deps: list
    artifacts: {input: {items: "{{list.out}}"}}
    entry_points:
      each:
        command: "echo {{PF_LOOP_ARGUMENT}}"
        loop_argument: "{{own}}"
        artifacts: {input: {own: "{{PF_PARENT.items}}"}}
"""
    )
    assert template(manifest, "list")["outputs"]["parameters"] == [
        {"name": "out", "valueFrom": {"path": "{{inputs.parameters.out}}"}}
    ]
    assert arguments(task(manifest, "sub"))["PF_CONTENT_items"] == "{{tasks.list.outputs.parameters.out}}"
    each = task(manifest, "each", "sub")
    assert each["withParam"] == "{{inputs.parameters.PF_CONTENT_items}}"
    assert arguments(each)["PF_LOOP_ARGUMENT"] == "{{item}}"


def test_a_loop_over_the_item_of_a_loop() -> None:
    manifest = exported(
        HEAD
        + """
entry_points:
  outer:
    loop_argument: [[1, 2], [3]]
    entry_points:
      inner:
        parameters: {list: "{{PF_PARENT.PF_LOOP_ARGUMENT}}"}
        loop_argument: "{{list}}"
        command: "echo {{PF_LOOP_ARGUMENT}}"
"""
    )
    assert task(manifest, "outer")["withItems"] == [{"seq": 0, "item": "[1, 2]"}, {"seq": 1, "item": "[3]"}]
    assert task(manifest, "inner", "outer")["withParam"] == "{{inputs.parameters.PF_LOOP_ARGUMENT}}"


def test_failure_options() -> None:
    text = HEAD + "entry_points: {a: {command: a, entry_points: {b: {command: b}}}}".replace("command: a, ", "")
    for strategy, expected in (("fail_fast", True), ("continue", False)):
        manifest = exported(text + f"\nfailure_options: {{strategy: {strategy}}}")
        assert template(manifest, "entry-points")["dag"]["failFast"] is expected
        assert template(manifest, "a")["dag"]["failFast"] is expected


def test_names_that_would_be_the_same_get_a_number() -> None:
    manifest = exported(
        HEAD + "entry_points: {a: {entry_points: {b: {command: x}}}, a-b: {command: y}, entry-points: {command: z}}"
    )
    names = [each["name"] for each in manifest["spec"]["templates"]]
    assert len(names) == len(set(names))
    assert {"a-b", "a-b-2", "entry-points-2"} <= set(names)


def test_the_annotations_tell_what_is_different() -> None:
    manifest = exported(HEAD + "cache: {enable: true}\nentry_points: {a: {command: a, env: {PF_JOB_QUEUE_NAME: q}}}")
    annotations = manifest["metadata"]["annotations"]
    assert "work-1" in annotations["paddleflow-needs"]
    assert "not used again" in annotations["paddleflow-differences"]
    assert "queues" in annotations["paddleflow-differences"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("entry_points: {a: {command: 'echo {{a-b}}'}}", r"step\[a\].*\{\{a-b\}\}.*template of its own"),
        ("entry_points: {a: {command: a, env: {PF_JOB_TYPE: distributed, PF_JOB_FRAMEWORK: ray}}}", "PF_JOB_TYPE"),
        ("entry_points: {a: {command: a}}\ndisabled: a", "all of its nodes are disabled"),
        (
            """entry_points:
  a: {command: a, artifacts: {output: [x]}}
  b: {command: b, deps: a, loop_argument: "{{x}}", artifacts: {input: {x: "{{a.x}}"}, output: [y]}}""",
            r"step\[b\].*does not number",
        ),
        (
            """entry_points:
  a: {command: a, loop_argument: [1], artifacts: {output: [x]}}
  b: {command: b, deps: a, condition: "{{x}} == 1", artifacts: {input: {x: "{{a.x}}"}}}""",
            r"step\[b\].*one file at a time",
        ),
        (
            """entry_points:
  a: {command: a, artifacts: {output: [x, y]}}
  b: {command: b, deps: a, condition: "{{x}} == {{y}}", artifacts: {input: {x: "{{a.x}}", y: "{{a.y}}"}}}""",
            r"step\[b\].*a number or a text",
        ),
        ("entry_points: {a: {command: a, condition: \"'' ?? x == x\"}}", r"\?\?"),
    ],
)
def test_what_argo_cannot_do_is_refused_by_name(body: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        exported(HEAD + body)


def test_a_step_without_an_image_is_refused() -> None:
    with pytest.raises(Invalid, match=r"step\[a\].*docker_env"):
        exported("name: demo\nentry_points: {a: {command: a}}")


VALUES: dict[str, Any] = {
    "n": 5,
    "text": "5",
    "word": "it's",
    "list": [1, 2],
    "later": Later("{{x}}"),
    "number": Later("{{x}}", Sort.NUMBER),
    "later_text": Later("{{x}}", Sort.TEXT),
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{{n}} > 3", "(5 > 3)"),
        ("{{text}} > 0x10", "(5 > 16)"),
        ("{{word}} == plain", r"('it\'s' == 'plain')"),
        ("'{{n}}' == '5'", "('5' == '5')"),
        ("{{later}} > 3", "({{x}} > 3)"),
        ("3 < {{later}}", "(3 < {{x}})"),
        ("{{later}} == yes", "('{{x}}' == 'yes')"),
        ("{{later}}", "{{x}}"),
        ("!{{later}} || {{number}} == 1", "(!({{x}}) || ({{x}} == 1))"),
        ("{{later}} in (a, b)", "('{{x}}' in ('a', 'b'))"),
        ("{{later}} in (a)", "('{{x}}' == 'a')"),
        (r"{{later}} =~ '^\d+$'", r"('{{x}}' =~ '^\\d+$')"),
        ("{{number}} + 1 > 2 * 3", "(({{x}} + 1) > (2 * 3))"),
        ("{{n}} - 1 - 1 == 3", "(((5 - 1) - 1) == 3)"),
        ("-{{later}} < 0", "(-({{x}}) < 0)"),
        ("v{{later}} == v1", "('v{{x}}' == 'v1')"),
        ("{{n}} > 3 ? {{later}} : false", "(((5 > 3)) ? ({{x}}) : (false))"),
        ("{{later_text}} == 'a'", "('{{x}}' == 'a')"),
        ("true", "true"),
    ],
)
def test_conditions(condition: str, expected: str) -> None:
    assert when(condition, lambda ref: VALUES[ref.name]) == expected


@pytest.mark.parametrize("condition", ["{{later}} == {{later}}", "{{n}} in {{list}}", "'a{{{{' == a", "{{later}} ?? a"])
def test_conditions_without_a_counterpart(condition: str) -> None:
    with pytest.raises(NoCounterpart):
        when(condition, lambda ref: VALUES[ref.name])
