"""What cannot be built or compiled says so, by name, as ``PipelineDSLError``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.domain.errors import Invalid
from paddleflow.pipeline import (
    DAG,
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
from paddleflow.pipeline.components import Component


def refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(PaddleFlowSDKException, match=words) as caught:
        make()
    assert caught.value.get_code() == "PipelineDSLError"
    assert isinstance(caught.value, Invalid)


def upstream() -> ContainerStep:
    return ContainerStep("up", parameters={"p": 1}, outputs={"o": Artifact()})


class Wrong:
    def __str__(self) -> str:
        return "wrong"


def _own_parameter() -> None:
    step = ContainerStep("s", parameters={"a": 1})
    step.parameters["b"] = step.parameters["a"]


def _twice() -> None:
    with DAG("d"):
        ContainerStep("s")
        ContainerStep("s")


def _in_two_dags() -> None:
    with DAG("one"):
        step = ContainerStep("s")
    DAG("two").add(step)


def _inside_itself() -> None:
    with DAG("one") as one, DAG("two") as two:
        pass
    two.add(one)


AT_ONCE: dict[str, tuple[Callable[[], object], str]] = {
    "pipeline name": (lambda: Pipeline(name="0p"), r"name of Pipeline is illegal: \[0p\]"),
    "pipeline name too long": (lambda: Pipeline(name="p" * 129), "illegal"),
    "pipeline name with a line break": (lambda: Pipeline(name="p\n"), "illegal"),
    "no parallelism": (lambda: Pipeline(name="p", parallelism=0), "parallelism should >= 1"),
    "step name with underscore": (lambda: ContainerStep("a_b"), r"name of ContainerStep is illegal: \[a_b\]"),
    "step name too long": (lambda: ContainerStep("a" * 31), "illegal"),
    "dag name": (lambda: DAG("1"), "name of DAG is illegal"),
    "parameter name": (lambda: ContainerStep("s", parameters={"1p": 1}), r"parameter of component\[s\] is illegal"),
    "artifact name": (lambda: ContainerStep("s", outputs={"a.b": Artifact()}), r"artifact of component\[s\]"),
    "env name": (lambda: ContainerStep("s", env={"A-B": "1"}), r"environment variable of \[s\] is illegal"),
    "pipeline env name": (lambda: Pipeline(name="p", env={"1": "1"}), r"environment variable of \[p\]"),
    "parameters not a dict": (lambda: ContainerStep("s", parameters=[1]), "parameters of .* should be a dict"),
    "env of a wrong kind": (lambda: ContainerStep("s", env={"A": Wrong()}), "text, a number or a Parameter"),
    "env of bool": (lambda: ContainerStep("s", env={"A": True}), r"env\[A\]"),
    "env of an artifact": (
        lambda: ContainerStep("s", env={"A": upstream().outputs["o"]}),
        r"env\[A\] .* not \[Artifact",
    ),
    "input of a text": (lambda: ContainerStep("s", inputs={"i": "x"}), "artifact of another component"),
    "input of nobody": (lambda: ContainerStep("s", inputs={"i": Artifact()}), "artifact of another component"),
    "output of a text": (lambda: ContainerStep("s", outputs={"o": "x"}), r"a new Artifact\(\)"),
    "output of another": (
        lambda: ContainerStep("s", outputs={"mine": upstream().outputs["o"]}),
        r"a new Artifact\(\)",
    ),
    "parameter of an artifact": (
        lambda: ContainerStep("s", parameters={"p": upstream().outputs["o"]}),
        "put it into the inputs",
    ),
    "condition of a wrong kind": (lambda: ContainerStep("s", condition=True), "condition .* should be a text"),
    "loop over a word": (lambda: ContainerStep("s", loop_argument="word"), "loop_argument"),
    "loop over a number": (lambda: ContainerStep("s", loop_argument=3), "loop_argument"),
    "loop over a tuple": (lambda: ContainerStep("s", loop_argument=(1, 2)), "loop_argument"),
    "loop over a JSON object": (lambda: ContainerStep("s", loop_argument="{}"), "loop_argument"),
    "loop over more than a reference": (
        lambda: ContainerStep("s", loop_argument=f"{upstream().parameters['p']}!"),
        "exactly one",
    ),
    "after a text": (lambda: ContainerStep("s").after("t"), "after steps and DAGs"),
    "type of a parameter": (lambda: Parameter(1, bool), "type of a Parameter"),
    "type by a wrong name": (lambda: Parameter(1, "integer"), "type of a Parameter"),
    "default not an int": (lambda: Parameter("x", int), r"default value\[x\]"),
    "default not whole": (lambda: Parameter(1.5, int), r"default value\[1.5\]"),
    "default not a list": (lambda: Parameter("abc", list), r"default value\[abc\]"),
    "text of a free parameter": (lambda: str(Parameter(1)), "belongs to no component"),
    "text of a free artifact": (lambda: f"{Artifact()}", "belongs to no component"),
    "extra_fs of a wrong kind": (lambda: ContainerStep("s", extra_fs="x"), "list of ExtraFS"),
    "main_fs of a wrong kind": (lambda: FSOptions(main_fs=ExtraFS("x")), "should be a MainFS"),
    "fs_scope of a wrong kind": (lambda: CacheOptions(fs_scope="/"), "list of FSScope"),
    "retry of a wrong kind": (lambda: ContainerStep("s", retry="x"), "retry of"),
    "retry below zero": (lambda: ContainerStep("s", retry=-1), "times"),
    "backoff below zero": (lambda: ContainerStep("s", retry=RetryOptions(1, -1)), "backoff"),
    "no time": (lambda: ContainerStep("s", timeout=0), "timeout"),
    "timeout of a text": (lambda: ContainerStep("s", timeout="1"), "timeout"),
    "post_process of a DAG": (lambda: Pipeline(name="p").set_post_process(DAG("d")), "should be a step"),
    "own parameter as a parameter": (_own_parameter, "refers to the same component"),
    "twice the same name": (_twice, r"two components named \[s\] in DAG\[d\]"),
    "in two DAGs": (_in_two_dags, r"is in DAG\[one\] already"),
    "inside itself": (_inside_itself, "cannot be inside itself"),
}


@pytest.mark.parametrize(("make", "words"), AT_ONCE.values(), ids=AT_ONCE)
def test_refused_at_once(make: Callable[[], object], words: str) -> None:
    refused(make, words)


def _read_only() -> list[tuple[Component | Pipeline, str]]:
    step = ContainerStep("s")
    return [(step, "inputs"), (step, "outputs"), (step, "parameters"), (step, "env"), (Pipeline(name="p"), "env")]


@pytest.mark.parametrize(("owner", "attribute"), _read_only(), ids=lambda given: str(getattr(given, "name", given)))
def test_the_dicts_themselves_cannot_be_replaced(owner: object, attribute: str) -> None:
    with pytest.raises(AttributeError):
        setattr(owner, attribute, {})


@pytest.mark.parametrize("change", [lambda env: env.update({"1": "x"}), lambda env: env.setdefault("1", "x")])
def test_no_way_around_the_checks_of_a_dict(change: Callable[[object], object]) -> None:
    refused(lambda: change(ContainerStep("s").env), "illegal")


def _foreign() -> ContainerStep:
    return ContainerStep("s", command=f"{upstream_elsewhere.parameters['p']}")


upstream_elsewhere = ContainerStep("elsewhere", parameters={"p": 1}, outputs={"o": Artifact()})


def _same_names(**given: object) -> Callable[[], object]:
    return lambda: ContainerStep("s", inputs={"x": upstream().outputs["o"]}, **given)


def _ring() -> None:
    one, two, three = ContainerStep("one"), ContainerStep("two"), ContainerStep("three")
    one.after(two)
    two.after(one)
    three.after(two)


def _out_of_a_dag() -> None:
    with DAG("d"):
        step = ContainerStep("s", parameters={"p": 1})
    ContainerStep("t", command=f"{step.parameters['p']}")


def _item_of_another() -> None:
    with DAG("d", loop_argument=[1]) as dag, DAG("e"):
        ContainerStep("s", command=f"{dag.loop_argument.item}")


def _item_without_loop() -> None:
    with DAG("d", loop_argument=[1]) as dag:
        ContainerStep("s", parameters={"p": dag.loop_argument.item})
    dag.loop_argument = None


def _own_item() -> None:
    step = ContainerStep("s", loop_argument=[1])
    step.loop_argument = step.loop_argument.item


def _own_output(field: str) -> Callable[[], object]:
    def make() -> None:
        step = ContainerStep("s", outputs={"o": Artifact()})
        setattr(step, field, str(step.outputs["o"]))

    return make


def _gone(kind: str) -> Callable[[], object]:
    def make() -> None:
        one = upstream()
        ContainerStep("s", parameters={"p": one.parameters["p"]}, inputs={"i": one.outputs["o"]})
        getattr(one, kind).clear()

    return make


def _from_inside() -> None:
    with DAG("d") as dag:
        step = ContainerStep("s", outputs={"o": Artifact()})
    dag.condition = f"{step.outputs['o']} > 1"


def _output_from_outside() -> None:
    one = upstream()
    with DAG("d") as dag:
        ContainerStep("s")
    dag.outputs["o"] = one.outputs["o"]


def _after_its_dag() -> None:
    with DAG("d") as dag:
        ContainerStep("s").after(dag)


def _renamed() -> None:
    ContainerStep("s")
    ContainerStep("t").name = "s"


WHEN_COMPILED: dict[str, tuple[Callable[[], object], str]] = {
    "nothing in it": (lambda: None, "no step or DAG in Pipeline"),
    "a step of another pipeline": (_foreign, r"component\[elsewhere\], which is not in this pipeline"),
    "after a step of another pipeline": (
        lambda: ContainerStep("s").after(upstream_elsewhere),
        r"after \[elsewhere\], which is not in this pipeline",
    ),
    "an input and an output of one name": (_same_names(outputs={"x": Artifact()}), r"input\[x\] and output\[x\]"),
    "names that differ by case alone": (_same_names(parameters={"X": 1}), r"parameter\[X\] and input\[x\]"),
    "parameters alike but for case": (
        lambda: ContainerStep("s", parameters={"a": 1, "A": 2}),
        "different names",
    ),
    "a ring": (_ring, r"there is a ring between \['one', 'two'\]"),
    "after itself": (lambda: (step := ContainerStep("s")).after(step), r"ring between \['s'\]"),
    "a parameter out of a DAG": (
        _out_of_a_dag,
        "only support reference Parameter from sibling component, ancestor component, and ancestor sibling component",
    ),
    "the loop item of a grandparent": (
        _item_of_another,
        "component can only reference itself or its parent component's loop item",
    ),
    "a loop item without a loop": (_item_without_loop, "has no loop_argument"),
    "a loop over its own item": (_own_item, "its own loop item"),
    "a loop over what it makes": (_own_output("loop_argument"), "its own output artifact"),
    "a condition on what it makes": (_own_output("condition"), "its own output artifact"),
    "a loop over an unknown name": (lambda: ContainerStep("s", loop_argument="{{x}}"), r"\{\{x\}\} is not a parameter"),
    "a loop over nobody's": (
        lambda: ContainerStep("s", loop_argument=Parameter([1])),
        "belongs to no component",
    ),
    "an artifact in env": (
        lambda: ContainerStep("s", env={"A": f"{upstream().outputs['o']}"}),
        "only parameters can be used there",
    ),
    "an artifact in the text of a parameter": (
        lambda: ContainerStep("s", parameters={"a": f"{upstream().outputs['o']}!"}),
        "can only use parameters",
    ),
    "a parameter that is gone": (_gone("parameters"), r"parameter\[p\] of step\[up\], which it does not have"),
    "an artifact that is gone": (_gone("outputs"), r"output artifact\[o\] of step\[up\]"),
    "a condition on what is inside": (_from_inside, "from inside itself"),
    "an output from outside": (_output_from_outside, "should come from inside it"),
    "after the DAG it is in": (_after_its_dag, "inside the other"),
    "a second name after the fact": (_renamed, r"two components named \[s\]"),
    "a parameter of a wrong kind": (lambda: ContainerStep("s", parameters={"p": Wrong()}), "texts, numbers and lists"),
    "a command of a wrong kind": (lambda: ContainerStep("s", command=["x"]), "command of"),
    "cache_options of a wrong kind": (lambda: ContainerStep("s", cache_options=True), "CacheOptions"),
    "an unnamed filesystem": (lambda: ContainerStep("s", extra_fs=ExtraFS("")), "names a filesystem"),
}


@pytest.mark.parametrize(("build", "words"), WHEN_COMPILED.values(), ids=WHEN_COMPILED)
def test_refused_when_compiled(build: Callable[[], object], words: str) -> None:
    pipeline = Pipeline(name="p")(build)()
    refused(pipeline.compile, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache_options": CacheOptions(enable="yes")}, "enable"),
        ({"cache_options": CacheOptions(max_expired_time="1")}, "max_expired_time"),
        ({"cache_options": CacheOptions(fs_scope=[FSScope("")])}, "names a filesystem"),
        ({"cache_options": {"enable": True}}, "should be given CacheOptions"),
        ({"failure_options": FailureOptions("stop")}, r"failure strategy should be \[fail_fast\] or \[continue\]"),
        ({"failure_options": "continue"}, "should be given FailureOptions"),
        ({"fs_options": FSOptions(MainFS(""))}, "names a filesystem"),
        ({"fs_options": FSOptions(MainFS("m", sub_path=1))}, "sub_path"),
        ({"fs_options": FSOptions(extra_fs=[ExtraFS("m", read_only=1)])}, "read_only"),
        ({"fs_options": MainFS("m")}, "should be given FSOptions"),
    ],
)
def test_options_are_refused_when_compiled(options: dict[str, object], words: str) -> None:
    refused(Pipeline(name="p", **options)(lambda: ContainerStep("s"))().compile, words)


POST_PROCESS: dict[str, tuple[Callable[[], ContainerStep], str]] = {
    "a name of the graph": (lambda: ContainerStep("s"), "has the name of a step"),
    "deps": (lambda: ContainerStep("post").after(ContainerStep("other")), "has deps"),
    "condition": (lambda: ContainerStep("post", condition="1 > 0"), "should not have condition"),
    "loop": (lambda: ContainerStep("post", loop_argument=[1]), "should not have loop_argument"),
    "cache": (lambda: ContainerStep("post", cache_options=CacheOptions()), "should not use cache"),
    "inputs": (lambda: ContainerStep("post", inputs={"i": upstream().outputs["o"]}), "has input artifacts"),
    "foreign artifact": (lambda: ContainerStep("post", command=f"{upstream().outputs['o']}"), "has input artifacts"),
    "foreign parameter": (lambda: ContainerStep("post", command=f"{upstream().parameters['p']}"), "something outside"),
}


@pytest.mark.parametrize(("make", "words"), POST_PROCESS.values(), ids=POST_PROCESS)
def test_a_post_process_stands_alone(make: Callable[[], ContainerStep], words: str) -> None:
    pipeline = Pipeline(name="p")(lambda: ContainerStep("s"))()
    pipeline.set_post_process(make())
    refused(pipeline.compile, words)


def test_a_text_made_too_early_says_so() -> None:
    step = ContainerStep("s", parameters={"p": 1})
    text = f"{step.parameters['p']}"

    def build() -> None:
        with DAG("d") as dag:
            dag.add(step)
            ContainerStep("t", command=text)

    refused(Pipeline(name="p")(build)().compile, "before the component was put into its DAG")
