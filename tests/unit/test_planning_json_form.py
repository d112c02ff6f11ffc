"""The JSON form of a pipeline: the same pipeline as its YAML, with defaults for every step."""

from __future__ import annotations

from copy import deepcopy

import pytest

from paddleflow.documents import load
from paddleflow.domain.errors import Invalid
from paddleflow.planning.json_form import from_json_form
from paddleflow.planning.parse import parse
from paddleflow.planning.source import DagSource, StepSource

DOCUMENT: dict[str, object] = {
    "username": "root",
    "description": "a pipeline",
    "name": "p",
    "dockerEnv": "image",
    "parallelism": 3,
    "disabled": "b",
    "failureOptions": {"strategy": "continue"},
    "cache": {"enable": True, "maxExpiredTime": 5, "fsScope": [{"name": "data", "path": "x"}]},
    "fsOptions": {
        "mainFS": {"name": "data", "mountPath": "/m", "subPath": "s", "readOnly": False},
        "extraFS": [{"name": "more", "readOnly": True}],
    },
    "entryPoints": {
        "a": {
            "command": "x",
            "dockerEnv": "own",
            "loopArgument": [1, 2],
            "artifacts": {"output": ["o"]},
            "cache": {"maxExpiredTime": "7"},
            "extraFS": [{"name": "own", "mountPath": "/o"}],
            "retry": {"times": 2},
            "timeout": 9,
            "parameters": {"camelCase": {"type": "int", "default": 1}},
        },
        "d": {"deps": "a", "entryPoints": {"c": {"reference": {"component": "r"}}}},
    },
    "components": {"r": {"command": "y", "loopArgument": "{{l}}"}},
    "postProcess": {"z": {"command": "w"}},
}

YAML = """\
name: p
docker_env: image
parallelism: 3
disabled: b
failure_options: {strategy: continue}
cache: {enable: true, max_expired_time: 5, fs_scope: [{name: data, path: x}]}
fs_options:
  main_fs: {name: data, mount_path: /m, sub_path: s, read_only: false}
  extra_fs: [{name: more, read_only: true}]
entry_points:
  a:
    command: x
    docker_env: own
    loop_argument: [1, 2]
    artifacts: {output: [o]}
    cache: {max_expired_time: "7"}
    extra_fs: [{name: own, mount_path: /o}]
    retry: {times: 2}
    timeout: 9
    parameters: {camelCase: {type: int, default: 1}}
  d:
    deps: a
    entry_points: {c: {reference: {component: r}}}
components: {r: {command: y, loop_argument: "{{l}}"}}
post_process: {z: {command: w}}
"""


def test_it_is_the_same_pipeline_as_its_yaml() -> None:
    before = deepcopy(DOCUMENT)
    assert from_json_form(DOCUMENT) == load(YAML).value
    assert before == DOCUMENT


def test_what_is_said_of_the_whole_becomes_a_default_of_every_step() -> None:
    source = parse(
        from_json_form(
            {
                "flavour": "f",
                "queue": "q",
                "jobType": "single",
                "env": {"A": "all", "N": 1, "PF_JOB_TYPE": "env wins"},
                "entryPoints": {
                    "a": {"env": {"A": "own"}, "queue": "mine"},
                    "b": {"env": {"PF_JOB_FLAVOUR": "env wins"}, "flavour": "mine"},
                    "d": {"entryPoints": {"e": {}}},
                    "r": {"reference": {"component": "c"}},
                },
                "components": {"c": {"command": "x"}},
                "postProcess": {"p": {}},
            }
        )
    )
    everywhere = {"PF_JOB_FLAVOUR": "f", "PF_JOB_QUEUE_NAME": "q", "PF_JOB_TYPE": "env wins", "A": "all", "N": "1"}
    a, b, d, r = source.nodes.values()
    assert isinstance(a, StepSource) and a.env == {**everywhere, "A": "own", "PF_JOB_QUEUE_NAME": "mine"}
    assert isinstance(b, StepSource) and b.env == {**everywhere, "PF_JOB_FLAVOUR": "env wins"}
    assert isinstance(d, DagSource) and isinstance(d.nodes["e"], StepSource) and d.nodes["e"].env == everywhere
    assert isinstance(r, StepSource) and r.env == {}
    component = source.components["c"]
    assert isinstance(component, StepSource) and component.env == everywhere
    assert source.post_process["p"].env == everywhere


STEP = "parse [entryPoints] failed, error: parse step[a] failed, "

FAULTS: list[tuple[dict[str, object], str]] = [
    ({"dockerenv": "x"}, "workflow has no attribute [dockerenv], did you mean [dockerEnv]?"),
    ({"docker_env": "x"}, "workflow has no attribute [docker_env], did you mean [dockerEnv]?"),
    ({"queue": 1}, "[queue] of workflow should be string type"),
    ({"env": []}, "[env] of workflow should be map type"),
    (
        {"entryPoints": {"a": {"loop_argument": []}}},
        STEP + "step has no attribute [loop_argument], did you mean [loopArgument]?",
    ),
    (
        {"entryPoints": {"a": {"jobType": 1}}},
        STEP + "[jobType] of step should be string type",
    ),
    (
        {"entryPoints": {"a": {"entryPoints": {}, "queue": "x"}}},
        "parse [entryPoints] failed, error: parse dag[a] failed, dag has no attribute [queue]",
    ),
    ({"cache": {"max_expired_time": 1}}, "[cache] has no attribute [max_expired_time], did you mean [maxExpiredTime]?"),
    ({"fsOptions": {"main_fs": {}}}, "[fsOptions] has no attribute [main_fs], did you mean [mainFS]?"),
    (
        {"fsOptions": {"mainFS": {"mount": "x"}}},
        "[mainFS] or each mount info in [extraFS] has no attribute [mount], did you mean [mountPath]?",
    ),
]


@pytest.mark.parametrize(("document", "message"), FAULTS)
def test_unknown_keys_are_refused_in_the_names_of_this_form(document: dict[str, object], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        from_json_form(document)
    assert caught.value.message == message
    assert caught.value.code == "InvalidPipeline"


WRONG_TYPES: list[dict[str, object]] = [
    {"entryPoints": []},
    {"entryPoints": {"a": 1}},
    {"entryPoints": {"a": {"entryPoints": 1}}},
    {"entryPoints": {"a": {"env": 1}}, "queue": "q"},
    {"entryPoints": {"a": {"cache": 1}}},
    {"entryPoints": {"a": {"extraFS": 1}}},
    {"entryPoints": {"a": {"extraFS": [1]}}},
    {"entryPoints": {}, "cache": 1},
    {"entryPoints": {}, "fsOptions": 1},
    {"entryPoints": {}, "fsOptions": {"mainFS": 1}},
    {"entryPoints": {}, "fsOptions": {"extraFS": 1}},
]


@pytest.mark.parametrize("document", WRONG_TYPES)
def test_wrong_types_are_left_to_the_parser(document: dict[str, object]) -> None:
    plain = from_json_form(document)
    with pytest.raises(Invalid, match="should be"):
        parse(plain)


def test_nesting_is_bounded() -> None:
    node: dict[str, object] = {}
    for _ in range(100_000):
        node = {"entryPoints": {"d": node}}
    with pytest.raises(Invalid, match="nested too deep"):
        from_json_form(node)
