"""Parsing a pipeline: what every key becomes, and every complaint with its words, its path and its line."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.documents import load
from paddleflow.domain.errors import Invalid
from paddleflow.planning.parse import WORKFLOW_KEYS, parse
from paddleflow.planning.parse_nodes import STEP_KEYS
from paddleflow.planning.source import (
    CacheSource,
    DagSource,
    FsSource,
    Limits,
    RetrySource,
    ScopeSource,
    Source,
    StepSource,
    TypedParameter,
)

WHOLE = """\
name: whole
docker_env: python:3.11
parallelism: 5
disabled: a,b.c
failure_options: {strategy: continue}
cache: {enable: true, max_expired_time: 600, fs_scope: [{name: data, path: src}, {name: data}]}
fs_options:
  main_fs: {name: data, mount_path: /mnt, sub_path: runs}
  extra_fs:
    - {name: more, read_only: true}
entry_points:
  prepare:
    command: python prepare.py {{rate}}
    type: Step
    parameters:
      rate: 0.5
      count: 3
      names: [a, [1, 2.5]]
      typed: {type: int, default: 3}
      many: {type: list, default: [1, 2]}
    env: {TEXT: a, COUNT: 3, RATE: 0.10, SMALL: 1.0e-12, LONG: 0.123456789012, WHOLE: 2.0}
    artifacts:
      input: {}
      output: [model, data]
    cache: {max_expired_time: "-1"}
    extra_fs: [{name: own, mount_path: /own}]
    retry: {times: 3, backoff: 1.5}
    timeout: 60
  inner:
    type: dag
    name: ignored
    deps: " prepare , ,prepare,"
    parameters: {p: "{{prepare.rate}}"}
    loop_argument: [1, b]
    condition: "{{p}} > 1"
    artifacts:
      input: {data: "{{prepare.data}}"}
      output: {best: "{{child.best}}"}
    entry_points:
      child:
        reference: {component: shared}
        artifacts: {input: {data: "{{PF_PARENT.data}}"}}
components:
  shared:
    docker_env: other
    command: run
    loop_argument: "{{l}}"
    condition: "true"
    artifacts: {output: {best: ""}}
post_process:
  mail: {command: mail}
"""

CHILD = StepSource(
    name="child",
    at=("entry_points", "inner", "entry_points", "child"),
    reference="shared",
    inputs={"data": "{{PF_PARENT.data}}"},
)


def parsed(text: str) -> Source:
    document = load(text)
    return parse(document.value, document.lines)


def test_every_key() -> None:
    source = parsed(WHOLE)
    assert source == Source(
        name="whole",
        docker_env="python:3.11",
        parallelism=5,
        disabled="a,b.c",
        strategy="continue",
        cache=CacheSource(
            enable=True,
            max_expired_time="600",
            fs_scope=(ScopeSource(name="data", path="src"), ScopeSource(name="data")),
        ),
        main_fs=FsSource(name="data", mount_path="/mnt", sub_path="runs"),
        extra_fs=(FsSource(name="more", read_only=True),),
        nodes={
            "prepare": StepSource(
                name="prepare",
                at=("entry_points", "prepare"),
                command="python prepare.py {{rate}}",
                parameters={
                    "rate": 0.5,
                    "count": 3,
                    "names": ["a", [1, 2.5]],
                    "typed": TypedParameter(type="int", default=3),
                    "many": TypedParameter(type="list", default=[1, 2]),
                },
                env={
                    "TEXT": "a",
                    "COUNT": "3",
                    "RATE": "0.1",
                    "SMALL": "0.000000000001",
                    "LONG": "0.12345679",
                    "WHOLE": "2",
                },
                outputs=("model", "data"),
                cache=CacheSource(max_expired_time="-1"),
                extra_fs=(FsSource(name="own", mount_path="/own"),),
                retry=RetrySource(times=3, backoff_s=1.5),
                timeout_s=60.0,
            ),
            "inner": DagSource(
                name="inner",
                at=("entry_points", "inner"),
                deps=("prepare",),
                parameters={"p": "{{prepare.rate}}"},
                loop=[1, "b"],
                condition="{{p}} > 1",
                inputs={"data": "{{prepare.data}}"},
                outputs={"best": "{{child.best}}"},
                nodes={"child": CHILD},
            ),
        },
        components={
            "shared": StepSource(
                name="shared",
                at=("components", "shared"),
                docker_env="other",
                command="run",
                loop="{{l}}",
                condition="true",
                outputs=("best",),
            )
        },
        post_process={"mail": StepSource(name="mail", at=("post_process", "mail"), command="mail")},
        lines=source.lines,
    )
    assert source.lines["entry_points", "prepare", "env", "RATE"] == 21


def test_little_is_needed() -> None:
    source = parsed("entry_points: {a: {}}")
    assert source.nodes == {"a": StepSource(name="a", at=("entry_points", "a"))}
    assert (source.parallelism, source.main_fs, source.cache) == (None, None, CacheSource())
    assert parse({"entry_points": {}}).nodes == {}


STEP = "parse [entry_points] failed, error: parse step[a] failed, "
DAG = "parse [entry_points] failed, error: parse dag[a] failed, "

MAIN_FS = "parse [main_fs] in [fs_options] failed, error: "
SCOPE = "parse [cache] in workflow failed, error: parse fs_scope in [cache] failed, error: "

WORKFLOW_FAULTS = [
    ("[]", "workflow should be map type", "", None),
    ("name: p", "[entry_points] of workflow should be map type", "", None),
    ("name: 1", "[name] of workflow should be string type", "name", 2),
    ("docker_env: 1", "[docker_env] of workflow should be string type", "docker_env", 2),
    ("entry_points: x", "[entry_points] of workflow should be map type", "entry_points", 2),
    ("components: []", "[components] of workflow should be map type", "components", 2),
    ("post_process: 1", "[post_process] of workflow should be map type", "post_process", 2),
    ("cache: 1", "[cache] of workflow should be map type", "cache", 2),
    ("parallelism: '1'", "[parallelism] of workflow should be int type", "parallelism", 2),
    ("parallelism: true", "[parallelism] of workflow should be int type", "parallelism", 2),
    ("disabled: [a]", "[disabled] of workflow should be string type", "disabled", 2),
    ("failure_options: x", "[failure_options] of workflow should be map type", "failure_options", 2),
    (
        "failure_options: {strategy: 1}",
        "[failure_options.strategy] of workflow should be string type",
        "failure_options.strategy",
        2,
    ),
    (
        "failure_options: {strategi: x}",
        "[failure_options] has no attribute [strategi], did you mean [strategy]?",
        "failure_options.strategi",
        2,
    ),
    ("fs_options: x", "[fs_options] of workflow should be map type", "fs_options", 2),
    (
        "fs_options: {main: {}}",
        "[fs_options] has no attribute [main], did you mean [main_fs]?",
        "fs_options.main",
        2,
    ),
    ("fs_options: {main_fs: x}", "[fs_options.main_fs] should be map type", "fs_options.main_fs", 2),
    (
        "fs_options: {main_fs: {name: 1}}",
        "parse [main_fs] in [fs_options] failed, error: [name] should be string type",
        "fs_options.main_fs.name",
        2,
    ),
    (
        "fs_options: {main_fs: {path: a}}",
        MAIN_FS + "[main_fs] or each mount info in [extra_fs] has no attribute [path], did you mean [sub_path]?",
        "fs_options.main_fs.path",
        2,
    ),
    ("fs_options: {extra_fs: x}", "[fs_options.extra_fs] should be list type", "fs_options.extra_fs", 2),
    (
        "fs_options: {extra_fs: [x]}",
        "each mount info in [extra_fs] should be map type",
        "fs_options.extra_fs.0",
        2,
    ),
    (
        "fs_options: {extra_fs: [{read_only: 1}]}",
        "parse [extra_fs] in [fs_options] failed, error: [read_only] should be bool type",
        "fs_options.extra_fs.0.read_only",
        2,
    ),
    ("entrypoints: {}", "workflow has no attribute [entrypoints], did you mean [entry_points]?", "entrypoints", 2),
    ("zzz: {}", "workflow has no attribute [zzz]", "zzz", 2),
    (
        "cache: {enabled: true}",
        "parse [cache] in workflow failed, error: [cache] has no attribute [enabled], did you mean [enable]?",
        "cache.enabled",
        2,
    ),
    (
        "cache: {enable: 1}",
        "parse [cache] in workflow failed, error: [cache.enable] should be bool type",
        "cache.enable",
        2,
    ),
    (
        "cache: {max_expired_time: 1.5}",
        "parse [cache] in workflow failed, error: [cache.max_expired_time] should be string/int64 type",
        "cache.max_expired_time",
        2,
    ),
    (
        "cache: {fs_scope: x}",
        "parse [cache] in workflow failed, error: [cache.fs_scope] should be list type",
        "cache.fs_scope",
        2,
    ),
    (
        "cache: {fs_scope: [x]}",
        "parse [cache] in workflow failed, error: each info in [fs_scope] should be map type",
        "cache.fs_scope.0",
        2,
    ),
    (
        "cache: {fs_scope: [{names: x}]}",
        SCOPE + "[fs_scope] has no attribute [names], did you mean [name]?",
        "cache.fs_scope.0.names",
        2,
    ),
    (
        "cache: {fs_scope: [{path: 1}]}",
        SCOPE + "[path] should be string type",
        "cache.fs_scope.0.path",
        2,
    ),
    (
        "components: {c: x}",
        "parse [components] failed, error: component should be map type",
        "components.c",
        2,
    ),
    (
        "post_process: {p: {x: 1}}",
        "parse [post_process] failed, error: parse step[p] failed, step has no attribute [x]",
        "post_process.p.x",
        2,
    ),
    ("post_process: {p: {entry_points: {}}}", "[post_process] can only have step", "post_process.p", 2),
]

STEP_FAULTS = [
    ("command: 1", "[command] in step should be string type", "command"),
    ("command:", "[command] in step should be string type", "command"),
    ("comand: x", "step has no attribute [comand], did you mean [command]?", "comand"),
    ("docker_env: 1", "[docker_env] in step should be string type", "docker_env"),
    ("deps: [b]", "[deps] in step should be string type", "deps"),
    ("condition: true", "[condition] in step should be string type", "condition"),
    ("parameters: x", "[parameters] in step should be map type", "parameters"),
    ("parameters: {p: {a: 1}}", "invalid dict parameter[map[a:1]]", "parameters.p"),
    ("parameters: {p: {type: 1, default: 2}}", "invalid dict parameter[map[type:1 default:2]]", "parameters.p"),
    (
        "parameters: {p: {type: int, default: {a: 1}}}",
        "invalid dict parameter[map[type:int default:{'a': 1}]]",
        "parameters.p.default",
    ),
    (
        "parameters: {p: [{a: 1}]}",
        "list param item can only be int, float, string, list type",
        "parameters.p.0",
    ),
    ("env: [a]", "[env] in step should be map type", "env"),
    ("env: {A: true}", "values in [env] should be string type", "env.A"),
    ("env: {A: [1]}", "values in [env] should be string type", "env.A"),
    ("env: {A: }", "values in [env] should be string type", "env.A"),
    ("artifacts: x", "[artifacts] in step should be map type", "artifacts"),
    ("artifacts: {in: {}}", "[artifacts] of step has no attribute [in]", "artifacts.in"),
    (
        "artifacts: {inputs: {}}",
        "[artifacts] of step has no attribute [inputs], did you mean [input]?",
        "artifacts.inputs",
    ),
    ("artifacts: {input: [a]}", "[artifacts.input] in step should be map[string]string type", "artifacts.input"),
    (
        "artifacts: {input: {a: 1}}",
        "[artifacts.input] in step should be map[string]string type",
        "artifacts.input.a",
    ),
    ("artifacts: {output: a}", "[artifacts.output] in step should be list of string type", "artifacts.output"),
    ("artifacts: {output: [1]}", "[artifacts.output] in step should be list of string type", "artifacts.output.0"),
    (
        "artifacts: {output: {a: b}}",
        '[artifacts.output] with map type must use empty string("") value, list type is recomended',
        "artifacts.output.a",
    ),
    ("cache: x", "[cache] in step should be map type", "cache"),
    ("cache: {enable: x}", "parse cache in step failed, error: [cache.enable] should be bool type", "cache.enable"),
    ("reference: x", "[reference] in step should be map type", "reference"),
    ("reference: {component: 1}", "[reference.component] in step should be string type", "reference.component"),
    (
        "reference: {components: x}",
        "[reference] of step has no attribute [components], did you mean [component]?",
        "reference.components",
    ),
    ("extra_fs: {}", "[extra_fs] in step should be list type", "extra_fs"),
    (
        "extra_fs: [{sub_path: 1}]",
        "parse [extra_fs] in step failed, error: [sub_path] should be string type",
        "extra_fs.0.sub_path",
    ),
    ("type: 1", "[type] in step should be string type", "type"),
    ("type: dag", "set [type] as [dag] in step", "type"),
    ("loop_argument: {a: 1}", "loopArgument can only be string or list type", "loop_argument"),
    (
        "loop_argument: [{a: 1}]",
        "each one in list loopArgument should be int or float or string",
        "loop_argument.0",
    ),
    ("entrypoints: {}", "step has no attribute [entrypoints], did you mean [entry_points]?", "entrypoints"),
    ("retry: 3", "[retry] in step should be map type", "retry"),
    ("retry: {}", "[retry.times] in step is missing: how often may the step be tried again?", "retry"),
    ("retry: {time: 3}", "[retry] of step has no attribute [time], did you mean [times]?", "retry.time"),
    ("retry: {times: '3'}", "[retry.times] in step should be int type", "retry.times"),
    ("retry: {times: 101}", "[retry.times] in step should be between 0 and 100", "retry.times"),
    ("retry: {times: -1}", "[retry.times] in step should be between 0 and 100", "retry.times"),
    ("retry: {times: 1, backoff: x}", "[retry.backoff] in step should be int or float type", "retry.backoff"),
    (
        "retry: {times: 1, backoff: -1}",
        "[retry.backoff] in step should not be negative: it is in seconds",
        "retry.backoff",
    ),
    ("timeout: 0", "[timeout] in step should be above zero: it is in seconds", "timeout"),
    ("timeout: 1h", "[timeout] in step should be int or float type", "timeout"),
    ("timeout: .inf", "[timeout] in step is too large", "timeout"),
    ("timeout: .nan", "[timeout] in step is too large", "timeout"),
]

DAG_FAULTS = [
    ("entry_points: x", "[entry_points] in dag should be map type", "entry_points"),
    ("deps: 1", "[deps] in dag should be string type", "deps"),
    ("condition: 1", "[condition] in dag should be string type", "condition"),
    ("parameters: 1", "[parameters] in dag should be map type", "parameters"),
    ("artifacts: 1", "[artifacts] in dag should be map type", "artifacts"),
    (
        "artifacts: {outputs: {}}",
        "[artifacts] of dag has no attribute [outputs], did you mean [output]?",
        "artifacts.outputs",
    ),
    ("artifacts: {input: 1}", "[artifacts.input] in dag should be map[string]string type", "artifacts.input"),
    ("artifacts: {output: [a]}", "[artifacts.output] in dag should be map[string]string type", "artifacts.output"),
    (
        "artifacts: {output: {a: 1}}",
        "[artifacts.output] in dag should be map[string]string type",
        "artifacts.output.a",
    ),
    ("type: step", "set [type] as [step] in dag", "type"),
    ("command: x", "dag has no attribute [command]", "command"),
    ("retry: {times: 1}", "dag has no attribute [retry]", "retry"),
    ("entry_points: {b: 1}", "component should be map type", "entry_points.b"),
    (
        "entry_points: {b: {deps: 1}}",
        "parse step[b] failed, [deps] in step should be string type",
        "entry_points.b.deps",
    ),
]


def complaint(text: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parsed(text)
    assert caught.value.code == "InvalidPipeline"
    return caught.value


@pytest.mark.parametrize(("text", "message", "path", "line"), WORKFLOW_FAULTS)
def test_faults_of_the_workflow(text: str, message: str, path: str, line: int | None) -> None:
    rest = "" if path in ("", "entry_points") else "\nentry_points: {}"
    error = complaint(text if line is None else f"# remark\n{text}{rest}")
    assert error.message == (message if line is None else f"{message} (line {line}, at {path})")
    assert error.details == ({"path": path} if line is None else {"path": path, "line": line})


@pytest.mark.parametrize(("text", "message", "key"), STEP_FAULTS)
def test_faults_of_a_step(text: str, message: str, key: str) -> None:
    error = complaint(f"entry_points:\n  a:\n    {text}\n")
    path = f"entry_points.a.{key}"
    assert error.message == f"{STEP}{message} (line 3, at {path})"
    assert error.details == {"path": path, "line": 3}


@pytest.mark.parametrize(("text", "message", "key"), DAG_FAULTS)
def test_faults_of_a_dag(text: str, message: str, key: str) -> None:
    own = "" if text.startswith("entry_points") else "    entry_points: {}\n"
    error = complaint(f"entry_points:\n  a:\n    {text}\n{own}")
    assert error.message == f"{DAG}{message} (line 3, at entry_points.a.{key})"


def test_a_node_that_is_no_map() -> None:
    error = complaint("entry_points:\n  a: x\n")
    problem = "parse [entry_points] failed, error: component should be map type"
    assert error.message == f"{problem} (line 2, at entry_points.a)"


def test_without_lines_only_the_path_is_known() -> None:
    with pytest.raises(Invalid) as caught:
        parse({"entry_points": {"a": {"env": 1}}})
    assert caught.value.message == f"{STEP}[env] in step should be map type"
    assert caught.value.details == {"path": "entry_points.a.env"}


def test_what_an_alias_repeats_is_found_on_the_line_of_the_alias() -> None:
    error = complaint("entry_points:\n  a: {env: &e {A: x}}\n  b: {artifacts: {input: {q: &f 1}}}\n")
    assert error.details["line"] == 3
    error = complaint("components: {c: {env: &e {A: true}}}\nentry_points: {}\n")
    assert error.details == {"path": "components.c.env.A", "line": 1}


def nested(levels: int) -> dict[str, object]:
    node: dict[str, object] = {"command": "x"}
    for _ in range(levels):
        node = {"entry_points": {"d": node}}
    return {"entry_points": {"d": node}}


def test_dags_can_be_nested_up_to_the_limit() -> None:
    assert parse(nested(20))
    with pytest.raises(Invalid, match="dags are nested too deep inside one another"):
        parse(nested(21))
    with pytest.raises(Invalid, match="dags are nested too deep"):
        parse(nested(100_000))
    with pytest.raises(Invalid, match="dags are nested too deep"):
        parse(nested(3), limits=Limits(depth=2))


def test_a_bottomless_list_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    for field in ({"parameters": {"p": endless}}, {"loop_argument": endless}):
        with pytest.raises(Invalid, match="lists are nested more than 64 deep"):
            parse({"entry_points": {"a": field}})


def test_keys_that_are_no_texts_are_refused() -> None:
    with pytest.raises(Invalid, match=r"\[env\] in step has the key \[1\], and keys should be string type"):
        parse({"entry_points": {"a": {"env": {1: "x"}}}})


keys = st.sampled_from(sorted({*WORKFLOW_KEYS, *STEP_KEYS, "input", "output", "times", "main_fs", "fs_scope", "type"}))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(anything | st.fixed_dictionaries({"entry_points": st.dictionaries(keys, anything, max_size=3)}))
def test_anything_is_parsed_or_refused(value: object) -> None:
    with suppress(Invalid):
        assert isinstance(parse(value), Source)
