"""What pipelines compile to, to the letter: the keys, their order, and the names that were inferred."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.documents import load
from paddleflow.pipeline import (
    DAG,
    FAIL_CONTINUE,
    PF_RUN_ID,
    Artifact,
    CacheOptions,
    ContainerStep,
    ExtraFS,
    FailureOptions,
    FSOptions,
    FSScope,
    MainFS,
    Parameter,
    Pipeline,
    RetryOptions,
)
from tests.pipeline.documents import accepted, compiled, nodes, same

S1_P = "2tize3o07mizsbsv9dbcx5fwz"
"""``PF-ENTRY-POINT.s1.p``, as hidden names spell it."""
S1_O = "bcm6930h3g9vqf7hx19cesi98"


def s1() -> ContainerStep:
    return ContainerStep("s1", command="make", parameters={"p": 1, "q": [1, 2]}, outputs={"o": Artifact()})


def test_everything_of_a_pipeline_in_its_order() -> None:
    @Pipeline(
        name="whole",
        parallelism=3,
        docker_env="python:3.11",
        env={"SHARED": "1", "OWN": "of the pipeline"},
        cache_options=CacheOptions(enable=True, fs_scope=FSScope("main", "data"), max_expired_time=60),
        failure_options=FailureOptions(FAIL_CONTINUE),
        fs_options=FSOptions(MainFS("main", sub_path="here"), [ExtraFS("more", mount_path="/more", read_only=True)]),
    )
    def whole(message: str) -> None:
        first = ContainerStep(
            "first",
            docker_env="busybox",
            command=f"echo {{{{message}}}} {PF_RUN_ID} > {{{{said}}}}",
            outputs={"said": Artifact(), "also": Artifact()},
            parameters={"message": message, "size": Parameter(type=int, default="3")},
            env={"OWN": "of the step"},
            cache_options=CacheOptions(),
            condition="{{size}} > 2",
            extra_fs=ExtraFS("more"),
            retry=RetryOptions(2, backoff=0.5),
            timeout=30,
        )
        ContainerStep("last", loop_argument=["a", "b"]).after(first)

    pipeline = whole("hello")
    pipeline.set_post_process(ContainerStep("mail", command="mail {{to}}", parameters={"to": "me"}))
    document = pipeline.compile()
    accepted(document)
    assert same(
        document,
        {
            "entry_points": {
                "first": {
                    "condition": "{{size}} > 2",
                    "type": "step",
                    "parameters": {"message": "hello", "size": {"default": 3, "type": "int"}},
                    "artifacts": {"output": ["also", "said"]},
                    "command": "echo {{message}} {{PF_RUN_ID}} > {{said}}",
                    "docker_env": "busybox",
                    "env": {"OWN": "of the step", "SHARED": "1"},
                    "cache": {"enable": False, "max_expired_time": -1},
                    "extra_fs": [{"name": "more", "read_only": False}],
                    "retry": {"times": 2, "backoff": 0.5},
                    "timeout": 30,
                },
                "last": {
                    "deps": "first",
                    "loop_argument": ["a", "b"],
                    "type": "step",
                    "env": {"SHARED": "1", "OWN": "of the pipeline"},
                },
            },
            "post_process": {
                "mail": {
                    "type": "step",
                    "parameters": {"to": "me"},
                    "command": "mail {{to}}",
                    "env": {"SHARED": "1", "OWN": "of the pipeline"},
                }
            },
            "docker_env": "python:3.11",
            "name": "whole",
            "cache": {"enable": True, "fs_scope": [{"name": "main", "path": "data"}], "max_expired_time": 60},
            "failure_options": {"strategy": "continue"},
            "parallelism": 3,
            "fs_options": {
                "main_fs": {"name": "main", "sub_path": "here"},
                "extra_fs": [{"name": "more", "mount_path": "/more", "read_only": True}],
            },
        },
    )


def test_references_in_every_field() -> None:
    def build() -> None:
        one = s1()
        two = ContainerStep(
            "two", parameters={"mine": 5}, inputs={"data": one.outputs["o"]}, outputs={"out": Artifact()}
        )
        two.command = f"run {two.parameters['mine']} {two.inputs['data']} {two.outputs['out']} {one.parameters['p']}"
        two.env["P"] = one.parameters["p"]
        two.env["BOTH"] = f"{one.parameters['p']}-{two.parameters['mine']}"
        two.loop_argument = one.parameters["q"]
        two.condition = f"{two.loop_argument.item} > {one.parameters['p']} && {one.outputs['o']} == 1"

    assert same(
        nodes(build)["two"],
        {
            "deps": "s1",
            "condition": (
                f"{{{{PF_LOOP_ARGUMENT}}}} > {{{{condition_param_{S1_P}}}}} && {{{{condition_art_{S1_O}}}}} == 1"
            ),
            "loop_argument": "{{loop_param_18gcp50hujqefsbdjj584ievf}}",
            "type": "step",
            "parameters": {
                "mine": 5,
                f"command_param_{S1_P}": "{{s1.p}}",
                f"env_param_{S1_P}": "{{s1.p}}",
                "loop_param_18gcp50hujqefsbdjj584ievf": "{{s1.q}}",
                f"condition_param_{S1_P}": "{{s1.p}}",
            },
            "artifacts": {"input": {"data": "{{s1.o}}", f"condition_art_{S1_O}": "{{s1.o}}"}, "output": ["out"]},
            "command": f"run {{{{mine}}}} {{{{data}}}} {{{{out}}}} {{{{command_param_{S1_P}}}}}",
            "env": {"P": f"{{{{env_param_{S1_P}}}}}", "BOTH": f"{{{{env_param_{S1_P}}}}}-{{{{mine}}}}"},
        },
    )


def test_into_nested_dags_and_out_again() -> None:
    def build() -> None:
        one = s1()
        with DAG("outer"):
            a = ContainerStep(
                "a",
                parameters={"x": one.parameters["p"]},
                inputs={"data": one.outputs["o"]},
                outputs={"r": Artifact()},
            )
            with DAG("inner"):
                b = ContainerStep("b", command=f"{a.outputs['r']} {one.parameters['p']}", outputs={"z": Artifact()})
        ContainerStep("end", inputs={"w": b.outputs["z"]})

    found = nodes(build)
    # The hashes below are of PF-ENTRY-POINT.outer.a.r, ….outer.inner.b.z, and (at the outermost border) ….inner.b.w.
    a_r, b_z, b_w = (_hash(f"PF-ENTRY-POINT.outer.{name}") for name in ("a.r", "inner.b.z", "inner.b.w"))
    assert same(
        found["outer"],
        {
            "deps": "s1",
            "type": "dag",
            "parameters": {f"dsl_param_{S1_P}": "{{s1.p}}"},
            "artifacts": {
                "input": {f"dsl_art_{S1_O}": "{{s1.o}}"},
                "output": {f"dsl_art_{b_w}": f"{{{{inner.dsl_art_{b_z}}}}}"},
            },
            "entry_points": {
                "a": {
                    "type": "step",
                    "parameters": {"x": f"{{{{PF_PARENT.dsl_param_{S1_P}}}}}"},
                    "artifacts": {"input": {"data": f"{{{{PF_PARENT.dsl_art_{S1_O}}}}}"}, "output": ["r"]},
                },
                "inner": {
                    "deps": "a",
                    "type": "dag",
                    "parameters": {f"dsl_param_{S1_P}": f"{{{{PF_PARENT.dsl_param_{S1_P}}}}}"},
                    "artifacts": {
                        "input": {f"dsl_art_{a_r}": "{{a.r}}"},
                        "output": {f"dsl_art_{b_z}": "{{b.z}}"},
                    },
                    "entry_points": {
                        "b": {
                            "type": "step",
                            "parameters": {f"command_param_{S1_P}": f"{{{{PF_PARENT.dsl_param_{S1_P}}}}}"},
                            "artifacts": {
                                "input": {f"command_art_{a_r}": f"{{{{PF_PARENT.dsl_art_{a_r}}}}}"},
                                "output": ["z"],
                            },
                            "command": f"{{{{command_art_{a_r}}}}} {{{{command_param_{S1_P}}}}}",
                        }
                    },
                },
            },
        },
    )
    assert same(
        found["end"],
        {"deps": "outer", "type": "step", "artifacts": {"input": {"w": f"{{{{outer.dsl_art_{b_w}}}}}"}}},
    )


def _hash(text: str) -> str:
    from paddleflow.pipeline.names import hidden_name

    owner, _, name = text.rpartition(".")
    return hidden_name("x", "y", owner, name).rpartition("_")[2]


def test_the_hash_of_the_manual() -> None:
    assert _hash("PF-ENTRY-POINT.s1.p") == S1_P


def test_loops_of_dags_reach_their_children() -> None:
    def build() -> None:
        with DAG("each", loop_argument=[1, 2]) as each:
            ContainerStep("use", command=f"echo {each.loop_argument.item}", parameters={"i": each.loop_argument.item})
            ContainerStep("again", loop_argument=each.loop_argument.item)

    item = _hash("PF-ENTRY-POINT.each.PF_LOOP_ARGUMENT")
    found = nodes(build)["each"]["entry_points"]
    assert same(
        found["use"],
        {
            "type": "step",
            "parameters": {
                "i": "{{PF_PARENT.PF_LOOP_ARGUMENT}}",
                f"command_param_{item}": "{{PF_PARENT.PF_LOOP_ARGUMENT}}",
            },
            "command": f"echo {{{{command_param_{item}}}}}",
        },
    )
    assert found["again"]["loop_argument"] == f"{{{{loop_param_{item}}}}}"


def test_dags_have_conditions_and_loops_over_what_others_made() -> None:
    def build() -> None:
        one = s1()
        with DAG("d", loop_argument=one.outputs["o"], condition=f"{one.parameters['p']} > 0"):
            ContainerStep("inside")

    assert same(
        nodes(build)["d"],
        {
            "deps": "s1",
            "condition": f"{{{{condition_param_{S1_P}}}}} > 0",
            "loop_argument": f"{{{{loop_art_{S1_O}}}}}",
            "type": "dag",
            "parameters": {f"condition_param_{S1_P}": "{{s1.p}}"},
            "artifacts": {"input": {f"loop_art_{S1_O}": "{{s1.o}}"}},
            "entry_points": {"inside": {"type": "step"}},
        },
    )


def test_borders_said_by_hand() -> None:
    """A DAG's own parameters, inputs and outputs may be written out; then nothing is hidden."""

    def build() -> None:
        one = s1()
        with DAG("d") as d:
            inside = ContainerStep("inside", outputs={"made": Artifact()})
        last = ContainerStep("last")
        d.parameters["given"] = one.parameters["p"]
        d.inputs["data"] = one.outputs["o"]
        inside.parameters["x"] = d.parameters["given"]
        inside.inputs["y"] = d.inputs["data"]
        d.outputs["result"] = inside.outputs["made"]
        last.inputs["in1"] = d.outputs["result"]

    found = nodes(build)
    assert same(
        found["d"],
        {
            "deps": "s1",
            "type": "dag",
            "parameters": {"given": "{{s1.p}}"},
            "artifacts": {"input": {"data": "{{s1.o}}"}, "output": {"result": "{{inside.made}}"}},
            "entry_points": {
                "inside": {
                    "type": "step",
                    "parameters": {"x": "{{PF_PARENT.given}}"},
                    "artifacts": {"input": {"y": "{{PF_PARENT.data}}"}, "output": ["made"]},
                }
            },
        },
    )
    assert found["last"]["artifacts"] == {"input": {"in1": "{{d.result}}"}}


def test_a_grandparents_parameter_is_handed_down() -> None:
    def build() -> None:
        with DAG("a") as a:
            a.parameters["size"] = 3
            with DAG("b"):
                ContainerStep("c", parameters={"n": a.parameters["size"]})

    b = nodes(build)["a"]["entry_points"]["b"]
    hidden = f"dsl_param_{_hash('PF-ENTRY-POINT.a.size')}"
    assert b["parameters"] == {hidden: "{{PF_PARENT.size}}"}
    assert b["entry_points"]["c"]["parameters"] == {"n": f"{{{{PF_PARENT.{hidden}}}}}"}


def test_after_is_lifted_to_the_dags_that_hold_the_two() -> None:
    def build() -> None:
        with DAG("left"):
            one = ContainerStep("one")
            two = ContainerStep("two").after(one)
        with DAG("right"):
            with DAG("deep"):
                ContainerStep("three").after(two)
            ContainerStep("four")

    found = nodes(build)
    assert found["right"]["deps"] == "left"
    assert "deps" not in found["right"]["entry_points"]["deep"]
    assert found["left"]["entry_points"]["two"]["deps"] == "one"


def test_two_artifacts_given_the_same_name_by_their_consumers_stay_apart() -> None:
    def build() -> None:
        with DAG("d"):
            made = ContainerStep("made", outputs={"a": Artifact(), "b": Artifact()})
        ContainerStep("first", inputs={"x": made.outputs["a"]})
        ContainerStep("second", inputs={"x": made.outputs["b"]})

    found = nodes(build)
    outputs = found["d"]["artifacts"]["output"]
    wanted = {
        name: found[name]["artifacts"]["input"]["x"].strip("{}").removeprefix("d.") for name in ("first", "second")
    }
    assert outputs[wanted["first"]] == "{{made.a}}"
    assert outputs[wanted["second"]] == "{{made.b}}"


def test_nodes_come_in_topological_order() -> None:
    def build() -> None:
        steps = {name: ContainerStep(name) for name in ("e", "d", "c", "b", "a")}
        steps["e"].after(steps["d"])
        steps["d"].after(steps["a"])
        steps["c"].after(steps["e"])

    # As if reading the list again from the top each time: b, a; then d; then e, c.
    assert list(nodes(build)) == ["b", "a", "d", "e", "c"]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (10, 10),
        ("text", "text"),
        ([1, "a", [2.5]], [1, "a", [2.5]]),
        ((1, 2), [1, 2]),
        (Parameter(10), 10),
        (Parameter([1, 2]), [1, 2]),
        (Parameter(), ""),
        (None, ""),
        (Parameter("5", int), {"default": 5, "type": "int"}),
        (Parameter(5, str), {"default": "5", "type": "string"}),
        (Parameter(5, float), {"default": 5.0, "type": "float"}),
        (Parameter("[1, 2]", list), {"default": [1, 2], "type": "list"}),
        (Parameter("a/b", "path"), {"default": "a/b", "type": "path"}),
        ({"type": "int", "default": 3}, {"type": "int", "default": 3}),
    ],
)
def test_values_of_parameters(given: object, written: object) -> None:
    assert same(nodes(lambda: ContainerStep("s", parameters={"p": given}))["s"]["parameters"], {"p": written})


@pytest.mark.parametrize("given", ["{{p}}", "{{ p }}", "[1, 2]", [1, 2], [[1], ["a"]], []])
def test_loops_over_what_yaml_can_say(given: object) -> None:
    step = nodes(lambda: ContainerStep("s", parameters={"p": [1, 2]}, loop_argument=given))["s"]
    assert step["loop_argument"] == given


def test_texts_of_parameters_may_refer_to_others() -> None:
    def build() -> None:
        one = s1()
        with DAG("d", loop_argument=[1]) as d:
            ContainerStep("x", parameters={"path": f"/data/{one.parameters['p']}/{d.loop_argument.item}"})
        ContainerStep("y", parameters={"path": f"/data/{one.parameters['p']}"})

    found = nodes(build)
    assert found["y"]["parameters"] == {"path": "/data/{{s1.p}}"}
    assert found["y"]["deps"] == "s1"
    assert found["d"]["entry_points"]["x"]["parameters"] == {
        "path": f"/data/{{{{PF_PARENT.dsl_param_{S1_P}}}}}/{{{{PF_PARENT.PF_LOOP_ARGUMENT}}}}"
    }


def test_a_pipelines_environment_may_refer_to_a_step() -> None:
    pipeline = Pipeline(name="p")(lambda: (s1(), ContainerStep("two")))()
    pipeline.add_env({"P": pipeline.entry_points["s1"].parameters["p"]})
    found = pipeline.compile()["entry_points"]
    assert found["s1"]["env"] == {"P": "{{p}}"}
    assert found["two"]["env"] == {"P": f"{{{{env_param_{S1_P}}}}}"}


def test_what_is_not_given_is_not_written() -> None:
    assert compiled(lambda: ContainerStep("s")) == {"entry_points": {"s": {"type": "step"}}, "name": "p"}


def test_compiling_changes_nothing() -> None:
    def build() -> None:
        one = s1()
        ContainerStep("two", command=f"{one.parameters['p']}")

    pipeline = Pipeline(name="p", env={"A": "1"})(build)()
    two = pipeline.entry_points["two"]
    first = pipeline.compile()
    assert not two.parameters
    first["entry_points"]["s1"]["parameters"]["q"].append(3)
    assert pipeline.compile()["entry_points"]["s1"]["parameters"]["q"] == [1, 2]
    assert isinstance(two, ContainerStep)
    two.command = "changed"
    assert "parameters" not in pipeline.compile()["entry_points"]["two"]


def test_a_chain_of_thousands_compiles() -> None:
    def build() -> None:
        last = ContainerStep("s0", parameters={"p": 1}, outputs={"o": Artifact()})
        for at in range(1, 3000):
            last = ContainerStep(
                f"s{at}",
                parameters={"p": last.parameters["p"]},
                inputs={"i": last.outputs["o"]},
                outputs={"o": Artifact()},
            )

    found = Pipeline(name="p")(build)().compile()["entry_points"]
    assert list(found) == [f"s{at}" for at in range(3000)]


def test_one_dict_of_outputs_serves_several_steps() -> None:
    outputs = {"model": Artifact()}

    def build() -> None:
        first = ContainerStep("first", outputs=outputs)
        ContainerStep("second", inputs={"given": first.outputs["model"]}, outputs=outputs)

    assert nodes(build)["second"]["artifacts"] == {"input": {"given": "{{first.model}}"}, "output": ["model"]}


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml"])
def test_saving(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "made" / "here" / f"p.{suffix}"
    document = Pipeline(name="p")(s1)().compile(str(path))
    text = path.read_text()
    assert (json.loads(text) if suffix == "json" else load(text).value) == document


def test_saving_as_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PaddleFlowSDKException, match=r"\.json, \.yaml or \.yml"):
        Pipeline(name="p")(s1)().compile(str(tmp_path / "p.txt"))
    assert not list(tmp_path.iterdir())
