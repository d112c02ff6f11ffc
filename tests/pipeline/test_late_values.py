"""Parameters given or changed in unusual ways: defaults set later, defaults that refer to others, what cannot refer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.pipeline import DAG, ContainerStep, Parameter, Pipeline


def nodes(build: Callable[[], object]) -> dict[str, Any]:
    pipeline: Any = Pipeline(name="late", docker_env="image")(build)
    entry_points: dict[str, Any] = pipeline().compile()["entry_points"]
    return entry_points


def parameters(build: Callable[[], object], *path: str) -> object:
    node: Any = {"entry_points": nodes(build)}
    for name in path:
        node = node["entry_points"][name]
    return node["parameters"]


def test_a_default_that_is_set_later_counts() -> None:
    def build() -> None:
        given = {"plain": 5, "typed": Parameter(default=1, type=int), "open": Parameter(type="string")}
        first = ContainerStep(name="first", command="ls", parameters=given)
        second = ContainerStep(name="second", command="ls", parameters={"taken": first.parameters["plain"]})
        for name, value in (("plain", 10), ("typed", "11"), ("open", 12)):
            first.parameters[name].default = value
        second.parameters["taken"].default = "own"

    expected = {"plain": 10, "typed": {"default": 11, "type": "int"}, "open": {"default": "12", "type": "string"}}
    assert parameters(build, "first") == expected
    assert parameters(build, "second") == {"taken": "own"}
    assert "deps" not in nodes(build)["second"]


def test_a_default_without_a_type_may_refer_to_others() -> None:
    def build() -> None:
        source = ContainerStep(name="source", command="ls", parameters={"n": 5})
        with DAG(name="each", loop_argument=[1, 2]) as each:
            inner = {
                "item": Parameter(default=each.loop_argument.item),
                "text": Parameter(default=f"at {each.loop_argument.item}"),
            }
            ContainerStep(name="inner", command="ls", parameters=inner)
        outer = {"same": Parameter(default=source.parameters["n"]), "text": Parameter(f"n={source.parameters['n']}")}
        ContainerStep(name="outer", command="ls", parameters=outer)

    assert parameters(build, "each", "inner") == {
        "item": "{{PF_PARENT.PF_LOOP_ARGUMENT}}",
        "text": "at {{PF_PARENT.PF_LOOP_ARGUMENT}}",
    }
    assert parameters(build, "outer") == {"same": "{{source.n}}", "text": "n={{source.n}}"}
    assert nodes(build)["outer"]["deps"] == "source"


REFERRING: dict[str, Callable[[str], dict[str, Any]]] = {
    "typed default": lambda text: {"parameters": {"p": Parameter(default=text, type="string")}},
    "list": lambda text: {"parameters": {"p": [1, [text]]}},
    "loop over a list": lambda text: {"loop_argument": ["x", text]},
    "loop over the JSON of a list": lambda text: {"loop_argument": f'["{text}"]'},
}


@pytest.mark.parametrize("given", REFERRING.values(), ids=REFERRING.keys())
def test_a_reference_where_nothing_would_replace_it_is_refused(given: Callable[[str], dict[str, Any]]) -> None:
    def build() -> None:
        source = ContainerStep(name="source", command="ls", parameters={"n": 5})
        ContainerStep(name="user", command="ls", **given(f"n={source.parameters['n']}"))

    with pytest.raises(PaddleFlowSDKException, match=r"step\[user\] refers to other components") as raised:
        nodes(build)
    assert raised.value.get_code() == "PipelineDSLError"


def test_a_default_that_belongs_nowhere_is_refused() -> None:
    def build() -> None:
        ContainerStep(name="user", command="ls", parameters={"p": Parameter(default=Parameter(1))})

    with pytest.raises(PaddleFlowSDKException, match="should be made of texts, numbers and lists"):
        nodes(build)
