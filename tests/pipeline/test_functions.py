"""``@step``: what functions compile to, and what their commands do when a real shell runs them."""

from __future__ import annotations

import functools
import logging
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import chain as joined
from math import pi
from math import tau as full_circle
from pathlib import Path
from typing import Any

import pytest

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.pipeline import (
    DAG,
    Artifact,
    CacheOptions,
    ContainerStep,
    Input,
    Output,
    RetryOptions,
    step,
)
from paddleflow.pipeline import Output as Made
from tests.pipeline.documents import compiled, nodes
from tests.pipeline.shell import result, run

FACTOR = 3
WEIGHTS = {"a": [1, 2.5], "b": (None, True)}
WORDS = {"alpha", "beta", "gamma", "delta"}
HANDLE = object()
log = logging.getLogger("mine")


@dataclass
class Pair:
    left: int
    right: int = FACTOR


def scaled(value: int) -> int:
    return value * FACTOR


@functools.lru_cache
def slow(value: int) -> int:
    log.warning("working")
    return value + 1


@step
def make(n: int, data: Output) -> list[int]:
    """Numbers, one on a line."""
    # What looks like a template or like shell is neither: {{n}} $HOME `id` "quoted" 'too'
    numbers = [scaled(at) for at in range(n)]
    data.write_text("\n".join(map(str, numbers)))
    return numbers


@step
def total(
    data: Input,
    factor: float = 1.0,
    label: str = "it's {x}",
    model: Output = Output(),  # noqa: B008 - how an output comes behind arguments with defaults
) -> dict[str, Any]:
    model.mkdir()
    (model / "label").write_text(label)
    return {"total": factor * math.fsum(int(line) for line in data.read_text().splitlines())}


@step
def everything(
    text: str, whole: int, part: float, flag: bool, items: list[int], table: dict[str, int], *, note: str = "n"
) -> list[Any]:
    return [text, whole, part, flag, items, table, note]


@step
def uses_its_module() -> list[Any]:
    def inner(value: int) -> int:
        return scaled(value)

    return [
        inner(2),
        WEIGHTS["a"],
        Pair(1).right,
        list(joined([1], [2])),
        make.__name__,
        os.sep,
        pi < full_circle,
        len(WORDS),
        slow(1),
    ]


@step
def says_it_otherwise(text: str, data: Made = Made()) -> None:  # noqa: B008 - it is only a mark
    data.write_text(text)


@step
def gather(parts: list[Input]) -> str:
    return ",".join(part.read_text() for part in parts)


@step
def add(left: int, right: int) -> int:
    return left + right


@step
def quiet(n: int = 1) -> None:
    sys.stdout.write(f"n is {n}\n")


@step
def forgets(data: Output) -> None:
    pass


def test_the_five_minute_path(tmp_path: Path) -> None:
    def build() -> None:
        made = make(4)
        total(made.data, factor=0.5)

    found = nodes(build)
    assert list(found) == ["make", "total"]
    assert found["make"]["parameters"] == {"n": {"default": 4, "type": "int"}}
    assert found["make"]["artifacts"] == {"output": ["data", "result"]}
    assert found["make"]["env"] == {"PF_PARAMETER_N": "{{n}}"}
    assert found["total"]["deps"] == "make"
    assert found["total"]["artifacts"] == {"input": {"data": "{{make.data}}"}, "output": ["model", "result"]}
    assert result(found["make"], tmp_path) == [0, 3, 6, 9]
    (tmp_path / "next").mkdir()
    assert result(found["total"], tmp_path / "next", data=str(tmp_path / "out" / "data")) == {"total": 9.0}
    assert (tmp_path / "next" / "out" / "model" / "label").read_text() == "it's {x}"


def test_every_type_arrives_as_it_left(tmp_path: Path) -> None:
    given = ("a 'b' \"c\" $d `e`\n{f}}}\\", -7, 1e-9, True, [1, 2], {"k": 1})
    (node,) = nodes(lambda: everything(*given, note="ü")).values()
    assert result(node, tmp_path) == [*given, "ü"]
    assert node["parameters"]["flag"] == "true"
    assert node["parameters"]["items"] == "[1, 2]"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("items", "[1 2 3]", [1, 2, 3]),
        ("items", "[a 2.5]", ["a", 2.5]),
        ("items", "[]", []),
        ("flag", "0", False),
        ("flag", "True", True),
        ("part", "3", 3.0),
        ("whole", "0012", 12),
    ],
)
def test_values_that_come_from_elsewhere(tmp_path: Path, name: str, text: str, value: object) -> None:
    (node,) = nodes(lambda: everything("", 1, 1, False, [], {})).values()
    node["parameters"][name] = text
    names = ["text", "whole", "part", "flag", "items", "table", "note"]
    assert result(node, tmp_path)[names.index(name)] == value


@pytest.mark.parametrize(("name", "text"), [("whole", "1.5"), ("flag", "maybe"), ("items", "1"), ("table", "[1]")])
def test_a_value_of_the_wrong_type_ends_the_step(tmp_path: Path, name: str, text: str) -> None:
    (node,) = nodes(lambda: everything("", 1, 1, False, [], {})).values()
    node["parameters"][name] = text
    done = run(node, tmp_path)
    assert done.returncode == 1
    assert f"argument [{name}] should be of type" in done.stderr


def test_what_it_uses_of_its_module_travels_along(tmp_path: Path) -> None:
    (node,) = nodes(uses_its_module).values()
    assert result(node, tmp_path) == [6, [1, 2.5], 3, [1, 2], "make", "/", True, 4, 2]


def test_marks_may_be_imported_under_another_name(tmp_path: Path) -> None:
    (node,) = nodes(lambda: says_it_otherwise("hello")).values()
    assert run(node, tmp_path).stderr == ""
    assert (tmp_path / "out" / "data").read_text() == "hello"


def test_results_are_arguments(tmp_path: Path) -> None:
    def build() -> None:
        one = add(1, 2)
        add(one, 3)
        add(one.result, one.left)

    found = nodes(build)
    assert list(found) == ["add", "add-2", "add-3"]
    assert found["add-2"]["artifacts"]["input"] == {"left": "{{add.result}}"}
    assert found["add-3"]["parameters"] == {"right": "{{add.left}}"}
    (tmp_path / "three").write_text("3")
    assert result(found["add-2"], tmp_path, left=str(tmp_path / "three")) == 6
    (tmp_path / "word").write_text('"three"')
    assert "should be of type int" in run(found["add-2"], tmp_path, left=str(tmp_path / "word")).stderr


def test_loops_give_each_item_to_an_argument(tmp_path: Path) -> None:
    def build() -> None:
        made = make(3)
        looped = add.loop(left=made)(right=1)
        gather(looped.result)

    found = nodes(build)
    hidden = found["add"]["loop_argument"].strip("{}")
    assert found["add"]["artifacts"]["input"] == {hidden: "{{make.result}}"}
    assert found["add"]["env"] == {"PF_PARAMETER_LEFT": "{{PF_LOOP_ARGUMENT}}", "PF_PARAMETER_RIGHT": "{{right}}"}
    assert result(found["add"], tmp_path, PF_LOOP_ARGUMENT="6", **{hidden: "unused"}) == 7
    for at in range(2):
        (tmp_path / f"part{at}").write_text(str(at))
    assert result(found["gather"], tmp_path, parts=f"{tmp_path}/part0,{tmp_path}/part1") == "0,1"


def test_one_input_for_the_outputs_of_several_steps(tmp_path: Path) -> None:
    def build() -> None:
        first, second = make(1), make(2)
        gather([first.data, second.data])

    node = nodes(build)["gather"]
    assert node["artifacts"]["input"] == {"parts_0": "{{make.data}}", "parts_1": "{{make-2.data}}"}
    for at in range(2):
        (tmp_path / f"file{at}").write_text(str(at))
    assert result(node, tmp_path, parts_0=f"{tmp_path}/file0", parts_1=f"{tmp_path}/file1") == "0,1"


def test_several_files_for_one_input_are_explained(tmp_path: Path) -> None:
    def build() -> None:
        total(make.loop(n=[1, 2])().data)

    done = run(nodes(build)["total"], tmp_path, data="/a,/b")
    assert done.returncode == 1
    assert "annotate it as list[Input]" in done.stderr


def test_it_is_a_step_like_any_other() -> None:
    def build() -> None:
        shell = ContainerStep("shell", parameters={"size": 2}, outputs={"list": Artifact()})
        with DAG("d", loop_argument=[1, 2]) as dag:
            made = make(dag.loop_argument.item)
            quiet.options(condition=f"{made.n} > 1")(n=shell.parameters["size"])
        options: dict[str, Any] = {
            "docker_env": "python:3.11",
            "env": {"A": "1"},
            "cache_options": CacheOptions(enable=True),
            "retry": RetryOptions(2),
            "timeout": 5,
            "name": "named",
        }
        total.options(**options)(shell.outputs["list"]).after(dag)

    found = nodes(build)
    inside = found["d"]["entry_points"]
    assert inside["make"]["parameters"] == {"n": "{{PF_PARENT.PF_LOOP_ARGUMENT}}"}
    assert inside["quiet"]["condition"].endswith(" > 1")
    assert inside["quiet"]["deps"] == "make"
    named = found["named"]
    assert named["deps"] == "d,shell"
    assert (named["docker_env"], named["timeout"], named["retry"]) == ("python:3.11", 5, {"times": 2})
    assert named["cache"] == {"enable": True, "max_expired_time": -1}
    assert named["env"]["A"] == "1"


def test_another_interpreter(tmp_path: Path) -> None:
    (node,) = nodes(lambda: add.options(python=sys.executable)(1, 2)).values()
    assert node["command"].startswith(sys.executable)
    assert result(node, tmp_path) == 3


def test_the_plain_function_can_be_called_and_tested() -> None:
    assert add.function(1, 2) == 3
    assert make.__doc__ == "Numbers, one on a line."


def test_nothing_returned_is_nothing_to_keep(tmp_path: Path) -> None:
    (node,) = nodes(quiet).values()
    assert "artifacts" not in node
    assert run(node, tmp_path).stdout == "n is 1\n"


def test_an_output_that_was_not_written_is_a_failure(tmp_path: Path) -> None:
    (node,) = nodes(forgets).values()
    done = run(node, tmp_path)
    assert done.returncode == 1
    assert "step forgets did not write its output [data]" in done.stderr


def test_a_failing_function_shows_its_lines(tmp_path: Path) -> None:
    @step
    def fails() -> None:
        text = """
not indented
"""
        raise ValueError(text.strip())

    (node,) = nodes(fails).values()
    done = run(node, tmp_path)
    assert done.returncode == 1
    assert "raise ValueError(text.strip())" in done.stderr
    assert "ValueError: not indented" in done.stderr


def test_the_same_function_compiles_to_the_same_command() -> None:
    assert compiled(lambda: make(3)) == compiled(lambda: make(3))


def test_the_command_does_not_depend_on_the_process() -> None:
    """Or else no result would ever be found in the cache."""
    code = "from tests.pipeline.test_functions import uses_its_module as made; print(made().command)"
    commands = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(commands) == 1


def local(value: int) -> Any:
    @step
    def closes_over() -> int:
        return value

    return closes_over


def wrapped() -> Any:
    @functools.wraps(add.function)
    def around(*args: Any) -> object:
        return add.function(*args)

    return step(around)


async def later() -> None: ...


def many() -> Any:
    yield 1


def star(*args: int) -> None: ...


def positional(a: int, /) -> None: ...


def untyped(a) -> None: ...


def pathlike(a: Path) -> None: ...


def optional(a: int | None = None) -> None: ...


def unknown(a: Missing) -> None: ...  # noqa: F821


def named_result(result: int) -> int:
    return result


def long_name(a_name_that_is_quite_a_bit_longer_than_most: int) -> None: ...


def uses_a_handle() -> None:
    str(HANDLE)


def uses_nothing_known() -> None:
    str(nowhere)  # noqa: F821


def typed() -> Any:
    namespace: dict[str, Any] = {}
    exec("def f() -> None: ...", namespace)
    return namespace["f"]


REFUSED: dict[str, tuple[Any, str]] = {
    "lambda": (lambda: step(lambda: None), "should be written with def"),
    "builtin": (lambda: step(len), "should be written with def"),
    "closure": (lambda: local(1), r"uses \['value'\] of the function around it"),
    "wrapper": (wrapped, "@step should be the only one"),
    "coroutine": (lambda: step(later), "ordinary function"),
    "generator": (lambda: step(many), "ordinary function"),
    "star": (lambda: step(star), "ordinary argument"),
    "positional only": (lambda: step(positional), "ordinary argument"),
    "no annotation": (lambda: step(untyped), r"argument\[a\] of step function\[untyped\].*has no annotation"),
    "path": (lambda: step(pathlike), "should be annotated as one of"),
    "optional": (lambda: step(optional), "should be annotated as one of"),
    "unknown annotation": (lambda: step(unknown), "annotation .* cannot be read"),
    "an argument called result": (lambda: step(named_result), r"can be called \[result\]"),
    "a long name": (lambda: step(long_name), "37 characters"),
    "no source": (step(typed()), "cannot be read"),
    "an object of the module": (step(uses_a_handle), r"uses \[HANDLE\], a object of its module"),
    "a name from nowhere": (step(uses_nothing_known), r"uses \[nowhere\], which is not defined"),
    "an unknown option": (lambda: step(image="x")(add.function), r"no option \['image'\]"),
    "a wrong type": (lambda: add("1", 2), r"argument\[left\] .* should be of type int, not \['1'\]"),
    "a bool for a number": (lambda: add(True, 2), "should be of type int"),
    "a fraction for an int": (lambda: add(1.5, 2), "should be of type int"),
    "no JSON": (lambda: everything("", 1, 1.0, True, [HANDLE], {}), "cannot be written as JSON"),
    "too few": (lambda: add(1), "missing a required argument"),
    "too many": (lambda: add(1, 2, 3), "too many positional"),
    "an output given": (lambda: make(1, data="x"), "unexpected keyword argument 'data'"),
    "a text for an input": (lambda: total("/tmp"), r"argument\[data\] .* is an Input"),
    "an empty list of inputs": (lambda: gather([]), "is an Input"),
    "a step without outputs": (lambda: total(quiet()), "say which of them is meant"),
    "a loop over nothing": (add.loop, "exactly one argument"),
    "a loop over an unknown argument": (lambda: add.loop(middle=[1]), r"no parameter \[middle\]"),
    "a loop over an output": (lambda: make.loop(data=[1]), r"no parameter \[data\]"),
    "two loops": (lambda: add.options(loop_argument=[1]).loop(left=[1])(right=2), "only have one of them"),
}


@pytest.mark.parametrize(("make_it", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(make_it: Any, words: str) -> None:
    with pytest.raises(PaddleFlowSDKException, match=words) as caught:
        make_it()
    assert caught.value.get_code() == "PipelineDSLError"


def test_a_function_too_large_to_send(tmp_path: Path) -> None:
    module = tmp_path / "large.py"
    module.write_text(f"TEXT = {'x' * 160_000!r}\ndef large() -> None:\n    print(TEXT)\n")
    namespace: dict[str, Any] = {"__name__": "large"}
    exec(compile(module.read_text(), str(module), "exec"), namespace)
    with pytest.raises(PaddleFlowSDKException, match="the limit is 110000"):
        step(namespace["large"])()


def test_unknown_outputs_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"step\[add\] has no output or parameter named \[nothing\]"):
        _ = add(1, 2).nothing
