"""Parsing the nodes of a pipeline: steps, and dags of further nodes."""

from __future__ import annotations

from collections.abc import Mapping

from paddleflow.domain.runs import Value
from paddleflow.planning.parse_options import parse_cache, parse_extra_fs, parse_retry, parse_timeout
from paddleflow.planning.parse_places import Place
from paddleflow.planning.source import DagSource, NodeSource, StepSource, TypedParameter, Written
from paddleflow.planning.templates import spell

_SHARED_KEYS = ("name", "type", "deps", "parameters", "artifacts", "loop_argument", "condition")
STEP_KEYS = (
    *_SHARED_KEYS,
    "command",
    "docker_env",
    "env",
    "cache",
    "reference",
    "extra_fs",
    "retry",
    "timeout",
)
DAG_KEYS = (*_SHARED_KEYS, "entry_points")


def parse_nodes(place: Place, name: str, levels: int) -> dict[str, NodeSource]:
    """The nodes of a map. ``levels`` is how many dags may still be inside one another."""
    return {key: _parse_node(key, item, levels) for key, item in place.mapping(name).items()}


def _parse_node(name: str, place: Place, levels: int) -> NodeSource:
    keys = place.mapping("component")
    if "entry_points" in keys:
        return _parse_dag(name, place.introduced(f"parse dag[{name}] failed, "), levels)
    return _parse_step(name, place.introduced(f"parse step[{name}] failed, "))


def _parse_step(name: str, place: Place) -> StepSource:
    # A node with entry_points is a dag and never comes here, but who misspelt that key should hear of it.
    keys = place.fields("step", (*STEP_KEYS, "entry_points"), "step")
    _check_type(keys, "step")
    inputs, outputs = _step_artifacts(keys["artifacts"]) if "artifacts" in keys else ({}, ())
    return StepSource(
        name=name,
        at=place.path,
        deps=_deps(keys, "step"),
        command=_text(keys, "command", "step"),
        docker_env=_text(keys, "docker_env", "step"),
        parameters=_parameters(keys, "step"),
        env=_env(keys["env"]) if "env" in keys else {},
        inputs=inputs,
        outputs=outputs,
        cache=parse_cache(keys["cache"], "[cache] in step", "parse cache in step failed, error: ")
        if "cache" in keys
        else None,
        reference=_reference(keys["reference"]) if "reference" in keys else "",
        extra_fs=parse_extra_fs(keys["extra_fs"], "[extra_fs] in step", "step") if "extra_fs" in keys else (),
        loop=_loop(keys),
        condition=_text(keys, "condition", "step"),
        retry=parse_retry(keys["retry"]) if "retry" in keys else None,
        timeout_s=parse_timeout(keys["timeout"]) if "timeout" in keys else None,
    )


def _parse_dag(name: str, place: Place, levels: int) -> DagSource:
    if levels == 0:
        place.fail("dags are nested too deep inside one another")
    keys = place.fields("dag", DAG_KEYS, "dag")
    _check_type(keys, "dag")
    inputs, outputs = _dag_artifacts(keys["artifacts"]) if "artifacts" in keys else ({}, {})
    return DagSource(
        name=name,
        at=place.path,
        deps=_deps(keys, "dag"),
        parameters=_parameters(keys, "dag"),
        inputs=inputs,
        outputs=outputs,
        nodes=parse_nodes(keys["entry_points"], "[entry_points] in dag", levels - 1),
        loop=_loop(keys),
        condition=_text(keys, "condition", "dag"),
    )


def _text(keys: dict[str, Place], key: str, kind: str) -> str:
    return keys[key].text(f"[{key}] in {kind}") if key in keys else ""


def _check_type(keys: dict[str, Place], kind: str) -> None:
    written = _text(keys, "type", kind)
    if "type" in keys and written.lower() != kind:
        keys["type"].fail(f"set [type] as [{written}] in {kind}")


def _deps(keys: dict[str, Place], kind: str) -> tuple[str, ...]:
    names = (name.strip() for name in _text(keys, "deps", kind).split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _env(place: Place) -> dict[str, str]:
    return {key: _env_text(item) for key, item in place.mapping("[env] in step").items()}


def _env_text(place: Place) -> str:
    """Numbers have eight decimals at most, unless nothing would be left of them."""
    value = place.value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        place.fail("values in [env] should be string type")
    short = round(value, 8) if isinstance(value, float) else value
    return spell(short or value)


def _parameters(keys: dict[str, Place], kind: str) -> dict[str, Written]:
    if "parameters" not in keys:
        return {}
    places = keys["parameters"].mapping(f"[parameters] in {kind}")
    return {key: _parameter(item) for key, item in places.items()}


def _parameter(place: Place) -> Written:
    if not isinstance(place.value, Mapping):
        return place.plain("list param item can only be int, float, string, list type")
    shown = " ".join(f"{key}:{item}" for key, item in place.value.items())
    problem = f"invalid dict parameter[map[{shown}]]"
    keys = place.mapping("parameter")
    type_name = keys["type"].value if "type" in keys else ""
    if keys.keys() - {"type", "default"} or not isinstance(type_name, str):
        place.fail(problem)
    return TypedParameter(type=type_name, default=keys["default"].plain(problem) if "default" in keys else None)


def _loop(keys: dict[str, Place]) -> Value:
    if "loop_argument" not in keys:
        return None
    place = keys["loop_argument"]
    if isinstance(place.value, Mapping):
        place.fail("loopArgument can only be string or list type")
    return place.plain("each one in list loopArgument should be int or float or string")


def _reference(place: Place) -> str:
    keys = place.fields("[reference] in step", ("component",), "[reference] of step")
    return keys["component"].text("[reference.component] in step") if "component" in keys else ""


def _step_artifacts(place: Place) -> tuple[dict[str, str], tuple[str, ...]]:
    keys = _artifact_keys(place, "step")
    inputs = keys["input"].texts("[artifacts.input] in step") if "input" in keys else {}
    return inputs, _step_outputs(keys["output"]) if "output" in keys else ()


def _step_outputs(place: Place) -> tuple[str, ...]:
    """A list of names; or, as the JSON form of earlier releases has it, a map of names to nothing."""
    if not isinstance(place.value, Mapping):
        items = place.items("[artifacts.output] in step", "list of string")
        for item in items:
            if not isinstance(item.value, str):
                item.fail("[artifacts.output] in step should be list of string type")
        return tuple(dict.fromkeys(str(item.value) for item in items))
    outputs = place.mapping("[artifacts.output] in step")
    for item in outputs.values():
        if item.value != "":
            item.fail('[artifacts.output] with map type must use empty string("") value, list type is recomended')
    return tuple(outputs)


def _dag_artifacts(place: Place) -> tuple[dict[str, str], dict[str, str]]:
    keys = _artifact_keys(place, "dag")
    inputs = keys["input"].texts("[artifacts.input] in dag") if "input" in keys else {}
    return inputs, keys["output"].texts("[artifacts.output] in dag") if "output" in keys else {}


def _artifact_keys(place: Place, kind: str) -> dict[str, Place]:
    return place.fields(f"[artifacts] in {kind}", ("input", "output"), f"[artifacts] of {kind}")
