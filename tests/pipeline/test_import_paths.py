"""The names and module paths that existing code imports."""

from __future__ import annotations

from importlib import import_module

import pytest

from paddleflow.pipeline import DAG, Artifact, ContainerStep, Pipeline

PATHS = {
    "paddleflow.pipeline": (
        "Pipeline ContainerStep DAG Artifact Parameter CacheOptions FSScope FSOptions MainFS ExtraFS FailureOptions "
        "FAIL_FAST FAIL_CONTINUE PF_RUN_ID PF_STEP_NAME PF_USER_NAME PF_LOOP_ARGUMENT PipelineServiceApi PipelineInfo "
        "PipelineVersionInfo"
    ),
    "paddleflow.pipeline.dsl": "ContainerStep",
    "paddleflow.pipeline.dsl.component": "Component Step ContainerStep DAG",
    "paddleflow.pipeline.dsl.component.component": "register_component_handler",
    "paddleflow.pipeline.dsl.io_types": "Artifact Parameter",
    "paddleflow.pipeline.dsl.io_types.dicts": "ParameterDict InputArtifactDict OutputArtifactDict EnvDict",
    "paddleflow.pipeline.dsl.io_types.placeholder": "ParameterPlaceholder ArtifactPlaceholder",
    "paddleflow.pipeline.dsl.io_types.loop_argument": "_LoopArgument _LoopItem",
    "paddleflow.pipeline.dsl.options": "CacheOptions FSScope FSOptions MainFS ExtraFS FailureOptions",
    "paddleflow.pipeline.dsl.compiler": "Compiler",
    "paddleflow.pipeline.dsl.compiler.dag_compiler": "DAGCompiler",
    "paddleflow.pipeline.dsl.compiler.step_compiler": "StepCompiler",
    "paddleflow.pipeline.dsl.inferer.component_inferer": "ComponentInferer",
    "paddleflow.pipeline.dsl.inferer.step_inferer": "ContainerStepInferer",
    "paddleflow.pipeline.dsl.inferer.dag_inferer": "DAGInferer",
    "paddleflow.pipeline.dsl.utils.util": "validate_string_by_regex random_code trans_10_36",
    "paddleflow.pipeline.dsl.utils.consts": (
        "PipelineDSLError PIPELINE_NAME_REGEX COMPONENT_NAME_REGEX VARIBLE_NAME_REGEX ENTRY_POINT_NAME"
    ),
}


@pytest.mark.parametrize(("module", "names"), PATHS.items())
def test_the_names_are_there(module: str, names: str) -> None:
    found = import_module(module)
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_unknown_names_are_not() -> None:
    with pytest.raises(AttributeError):
        _ = import_module("paddleflow.pipeline").Nothing


def test_values_that_scripts_compare_with() -> None:
    pipeline, consts = import_module("paddleflow.pipeline"), import_module("paddleflow.pipeline.dsl.utils.consts")
    assert (pipeline.FAIL_FAST, pipeline.FAIL_CONTINUE) == ("fail_fast", "continue")
    assert pipeline.PF_LOOP_ARGUMENT == "{{PF_LOOP_ARGUMENT}}"
    assert consts.PipelineDSLError == "PipelineDSLError"
    assert consts.ENTRY_POINT_NAME == "PF-ENTRY-POINT"


def test_small_functions() -> None:
    util = import_module("paddleflow.pipeline.dsl.utils.util")
    assert util.validate_string_by_regex("abc", "^[a-c]+$")
    assert not util.validate_string_by_regex("abd", "^[a-c]+$")
    assert len(util.random_code(6)) == 6
    for number in (0, 35, 36, -619636339069370109986290477894975592, 2**128):
        assert int(util.trans_10_36(number), 36) == number


def test_parts_can_be_compiled_alone() -> None:
    compiler, inferer = (
        import_module("paddleflow.pipeline.dsl.compiler"),
        import_module("paddleflow.pipeline.dsl.inferer"),
    )
    first = ContainerStep("first", command="x", parameters={"p": 1}, outputs={"o": Artifact()})
    second = ContainerStep("second", parameters={"q": first.parameters["p"]}, inputs={"i": first.outputs["o"]})
    assert compiler.StepCompiler(second).compile() == {
        "deps": "first",
        "type": "step",
        "parameters": {"q": "{{first.p}}"},
        "artifacts": {"input": {"i": "{{first.o}}"}},
    }
    with DAG("d") as dag:
        step = ContainerStep("s", parameters={"p": 1})
        ContainerStep("t", command=f"{step.parameters['p']}")
    assert compiler.DAGCompiler(dag).compile()["entry_points"]["t"]["deps"] == "s"
    assert inferer.ContainerStepInferer(step).infer({"A": "1"}).env == {"A": "1"}
    assert not step.env
    assert inferer.DAGInferer(dag).infer({}).children["t"].deps == {"s"}
    pipeline = Pipeline(name="p")(lambda: ContainerStep("s"))()
    assert compiler.Compiler().compile(pipeline) == pipeline.compile()
