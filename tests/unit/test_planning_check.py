"""Checking as a whole: what is legal, where a problem is, which comes first, how large a pipeline may be."""

from __future__ import annotations

import string
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.documents import load
from paddleflow.domain.errors import Invalid
from paddleflow.planning.check import check, problems
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.source import DagSource, Limits, NodeSource, Overrides, Source, StepSource
from tests.planned import with_commands

NOTHING = Overrides()


def source_of(text: str) -> Source:
    document = load(textwrap.dedent(text))
    return with_commands(parse(document.value, document.lines))


def messages(text: str, overrides: Overrides = NOTHING, limits: Limits | None = None) -> list[str]:
    found = problems(source_of("name: p\n" + textwrap.dedent(text)), overrides, limits or Limits())
    return [problem.message for problem in found]


LEGAL = {
    "nothing to run": "entry_points: {}",
    "no image": "entry_points: {a: {command: ls}}",
    "literal braces": "entry_points: {a: {command: 'docker ps --format {{.Names}} ${x} {{ a b }} {{a.b.c}}'}}",
    "system parameters": """
        entry_points:
          a:
            parameters: {p: 'x-{{PF_RUN_ID}}-{{ PF_STEP_NAME }}-{{PF_USER_NAME}}-{{PF_LOOP_ARGUMENT}}'}
            env: {E: '{{PF_RUN_ID}} {{p}}'}
            command: echo {{p}} {{PF_LOOP_ARGUMENT}}
            condition: '{{PF_USER_NAME}} == root && {{p}} != ""'
    """,
    "typed": """
        entry_points:
          a:
            parameters:
              s: {type: string, default: 'x'}
              f: {type: float, default: 1}
              i: {type: int, default: -1}
              p: {type: path, default: ./a/b_c-d.txt}
              l: {type: list, default: [1, 2.5, x, [3]]}
    """,
    "parameter of a node with a condition": """
        entry_points: {a: {parameters: {p: 1}, condition: 1 > 2}, b: {deps: a, parameters: {q: '{{a.p}}'}}}
    """,
    "parents": """
        fs_options: {main_fs: {name: work}}
        entry_points:
          make: {artifacts: {output: [data]}}
          d:
            deps: make
            parameters: {p: 1}
            loop_argument: [1, 2]
            artifacts: {input: {data: '{{make.data}}'}, output: {model: '{{train.model}}'}}
            entry_points:
              train:
                parameters: {p: '{{PF_PARENT.p}}', item: '{{PF_PARENT.PF_LOOP_ARGUMENT}}'}
                artifacts: {input: {data: '{{PF_PARENT.data}}'}, output: [model]}
                command: train {{data}} {{model}} {{p}}
          use: {deps: 'd, make', artifacts: {input: {m: '{{d.model}}'}}}
    """,
    "components": """
        fs_options: {main_fs: {name: work}}
        entry_points:
          a: {reference: {component: make}}
          b: {deps: a, reference: {component: use}, parameters: {n: '{{a.n}}'}, artifacts: {input: {i: '{{a.o}}'}}}
        components:
          make: {reference: {component: base}, parameters: {n: 2}}
          base: {parameters: {n: {type: int, default: 1}}, artifacts: {output: [o]}}
          use: {parameters: {n: {type: int, default: 1}}, artifacts: {input: {i: ''}}, command: 'cat {{i}}'}
    """,
    "loops": """
        fs_options: {main_fs: {name: work}}
        entry_points:
          a: {loop_argument: [1, x, 2.5, [1, [2]]], artifacts: {output: [o]}}
          b: {loop_argument: '[1, "x", [2]]'}
          c: {parameters: {l: [1, 2]}, loop_argument: '{{ l }}'}
          d: {deps: a, artifacts: {input: {i: '{{a.o}}'}}, loop_argument: '{{i}}'}
          e: {loop_argument: []}
    """,
    "all disabled, and what is disabled may be wrong inside": """
        disabled: a, d
        entry_points: {a: {command: '{{nobody}}'}, d: {entry_points: {x: {parameters: {p: '{{y.z}}'}}}}}
    """,
    "disabled one is used by a disabled one": """
        disabled: a,b
        entry_points: {a: {parameters: {p: 1}}, b: {deps: a, parameters: {p: '{{a.p}}'}}, c: {deps: a}}
    """,
    "post-process": "entry_points: {a: {}}\npost_process: {z: {command: 'echo {{PF_RUN_ID}}'}}\ndisabled: z",
    "step beside a loop": "entry_points: {s: {loop_argument: [1, 2]}, s-1: {}}",
    "dag beside a dag without a loop": "entry_points: {d: {entry_points: {a: {}}}, d-1: {entry_points: {a: {}}}}",
    "dag beside the first item": (
        "entry_points: {d: {loop_argument: [1], entry_points: {a: {}}}, d-0: {entry_points: {a: {}}}}"
    ),
    "scopes": """
        fs_options: {main_fs: {name: work}, extra_fs: [{name: more, mount_path: /mnt/more, sub_path: a/b}]}
        cache: {enable: true, max_expired_time: 60, fs_scope: [{name: work, path: 'a,b'}, {name: more}]}
        entry_points:
          a: {extra_fs: [{name: own}], cache: {max_expired_time: '-1', fs_scope: [{name: own, path: /x}]}}
    """,
}


@pytest.mark.parametrize("text", LEGAL.values(), ids=LEGAL)
def test_what_is_legal_is_not_complained_about(text: str) -> None:
    assert messages(text) == []
    compile_plan(source_of("name: p\n" + textwrap.dedent(text)), NOTHING, Limits())


def test_the_first_problem_is_raised_with_its_line() -> None:
    text = """\
        name: p
        entry_points:
          train:
            env:
              LR: x
              BAD: '{{nobody}}'
    """
    with pytest.raises(Invalid) as raised:
        check(source_of(text), NOTHING, Limits())
    assert raised.value.code == "InvalidPipeline"
    assert raised.value.details == {"path": "entry_points.train.env.BAD", "line": 6}
    assert raised.value.message == (
        "unsupported RefParamName[nobody] for param[{{nobody}}] of filedType[env]"
        " (line 6, at entry_points.train.env.BAD)"
    )


def test_without_lines_the_message_is_bare() -> None:
    with pytest.raises(Invalid) as raised:
        check(parse({"name": "p", "entry_points": {"a": {"deps": "zzz"}}}), NOTHING, Limits())
    assert raised.value.message == "component [a] has an wrong dep [zzz]"
    assert raised.value.details == {"path": "entry_points.a.deps", "line": None}


def test_the_line_of_a_circle_is_a_node_on_it() -> None:
    text = "name: p\nentry_points:\n  after: {deps: a}\n  a:\n    deps: b\n  b:\n    deps: a\n"
    (problem,) = problems(source_of(text), NOTHING, Limits())
    assert (problem.message, problem.line) == ("workflow is not acyclic", 5)


def test_problems_come_in_the_known_order() -> None:
    text = """
        failure_options: {strategy: hope}
        cache: {max_expired_time: soon}
        disabled: nobody
        docker_env: x.tar
        entry_points:
          a_a: {}
          b: {deps: c, condition: '1 >', loop_argument: 5, parameters: {p: '{{x}}'}, command: '{{y}}'}
        post_process: {z: {deps: b}}
    """
    starts = [
        "check stepName[a_a]",
        "step [z] in post_process has deps",
        "param[zzz] not exist",
        "disabled component[nobody]",
        "component [b] has an wrong dep [c]",
        "condition[1 >] is invalid",
        "loopArgument can only",
        "image as tar",
        "unsupported SysParamName[x]",
        "unsupported RefParamName[y]",
        "MaxExpiredTime[soon]",
        "failure strategy",
    ]
    found = messages(text, Overrides(parameters={"zzz": 1}))
    assert len(found) == len(starts)
    for message, start in zip(found, starts, strict=True):
        assert message.startswith(start)


def test_the_request_wins_before_anything_is_checked() -> None:
    text = "name: 9x\nfailure_options: {strategy: hope}\ndisabled: zzz\nentry_points: {a: {artifacts: {output: [o]}}}"
    request = Overrides(name="good", strategy="continue", disabled="a", docker_env="x", fs_name="work")
    assert problems(source_of(text), request, Limits()) == ()
    assert len(problems(source_of(text), NOTHING, Limits())) == 4


@pytest.mark.parametrize("field", ["name", "docker_env", "strategy", "disabled"])
def test_what_the_request_says_is_checked(field: str) -> None:
    wrong = Overrides(**{field: "9 x.tar"})  # type: ignore[arg-type]
    assert len(messages("entry_points: {a: {}}", wrong)) == 1


# Sizes.


def test_a_literal_loop_over_the_limit_names_the_setting() -> None:
    few = Limits(loop_items=3)
    for loop in ("[1, 2, 3, 4]", "'[1, 2, 3, 4]'"):
        assert messages(f"entry_points: {{a: {{loop_argument: {loop}}}}}", limits=few) == [
            "loopArgument of component [a] has 4 items, the limit is 3; the setting pipelines.max_loop_items raises it"
        ]
    assert messages("entry_points: {a: {loop_argument: [1, 2, 3]}}", limits=few) == []


def test_too_many_nodes_name_the_setting() -> None:
    text = "entry_points: {a: {}, d: {entry_points: {b: {}, c: {}}}}"
    assert messages(text, limits=Limits(nodes=4)) == []
    assert messages(text, limits=Limits(nodes=3)) == [
        "the pipeline has 4 nodes, the limit is 3; the setting pipelines.max_nodes raises it"
    ]


def test_a_few_lines_of_components_cannot_ask_for_a_billion_nodes() -> None:
    components: dict[str, Any] = {"c0": {"command": "x"}}
    for level in range(1, 40):
        inner = {"reference": {"component": f"c{level - 1}"}}
        components[f"c{level}"] = {"entry_points": {"x": inner, "y": inner}}
    value = {"name": "p", "entry_points": {"a": {"reference": {"component": "c39"}}}, "components": components}
    found = [problem.message for problem in problems(with_commands(parse(value)), NOTHING, Limits())]
    assert found[0].startswith(f"the pipeline has {2**40 - 1} nodes, the limit is 20000;")
    assert "dags are nested 39 deep, the limit is 20" in found


def test_components_nested_in_each_other_count_as_depth() -> None:
    text = """
        entry_points: {d: {entry_points: {a: {reference: {component: c}}}}}
        components: {c: {entry_points: {x: {}}}}
    """
    assert messages(text, limits=Limits(depth=2)) == []
    assert messages(text, limits=Limits(depth=1)) == ["dags are nested 2 deep, the limit is 1"]


def test_nesting_of_any_depth_is_an_answer_and_not_a_crash() -> None:
    node: NodeSource = StepSource(name="x", at=("entry_points",))
    for _ in range(20_000):
        node = DagSource(name="x", at=("entry_points",), nodes={"x": node})
    source = Source(name="p", nodes={"x": node})
    found = [problem.message for problem in problems(source, NOTHING, Limits(nodes=100_000))]
    assert found == ["dags are nested 20000 deep, the limit is 20"]
    while isinstance(node, DagSource):  # taken apart here, because freeing it whole would recurse
        node = node.nodes["x"]


def test_a_long_ring_of_components_is_found() -> None:
    ring = {f"c{n}": {"reference": {"component": f"c{(n + 1) % 5000}"}} for n in range(5000)}
    value = {"name": "p", "entry_points": {"a": {"reference": {"component": "c0"}}}, "components": ring}
    found = [problem.message for problem in problems(with_commands(parse(value)), NOTHING, Limits())]
    assert found == ["components reference is not acyclic"]


def test_a_long_chain_of_steps_is_fine() -> None:
    nodes = {f"s{n}": {"deps": f"s{n + 1}"} for n in range(10_000)} | {"s10000": {}}
    assert problems(with_commands(parse({"name": "p", "entry_points": nodes})), NOTHING, Limits()) == ()


def test_many_wrong_names_get_few_suggestions() -> None:
    nodes = {f"step{n}": {"deps": f"stepp{n}"} for n in range(300)}
    found = problems(with_commands(parse({"name": "p", "entry_points": nodes})), NOTHING, Limits())
    assert len(found) == 300
    assert sum("did you mean" in problem.message for problem in found) == 20


# What nobody foresaw.

words = st.sampled_from(["a", "b", "c", "d-1", "d", "PF_PARENT", "PF_RUN_ID", "p", "o", "9", "a_b", ""])
texts = st.one_of(
    words,
    st.builds("{{{{{}}}}}".format, words),
    st.builds("{{{{ {}.{} }}}}".format, words, words),
    st.text(string.printable, max_size=8),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(texts, st.integers(), st.floats(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
parameters = st.dictionaries(words, values, max_size=3)


def nodes_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    shared = {
        "deps": st.lists(words, max_size=2).map(",".join),
        "parameters": parameters,
        "condition": texts,
        "loop_argument": values,
    }
    step = st.fixed_dictionaries(
        {},
        optional=shared
        | {
            "command": texts,
            "env": st.dictionaries(words, texts, max_size=2),
            "artifacts": st.fixed_dictionaries(
                {}, optional={"input": st.dictionaries(words, texts, max_size=2), "output": st.lists(words, max_size=2)}
            ),
            "reference": st.builds(lambda name: {"component": name}, words),
        },
    )
    dag = st.fixed_dictionaries({"entry_points": inner}, optional=shared)
    return st.dictionaries(words, st.one_of(step, dag), max_size=3)


node_maps = st.recursive(st.just({}), nodes_of, max_leaves=4)


@settings(max_examples=150)
@given(
    nodes=node_maps,
    components=node_maps,
    disabled=st.lists(words, max_size=2).map(",".join),
    request=st.dictionaries(st.lists(words, min_size=1, max_size=3).map(".".join), values, max_size=2),
)
def test_any_pipeline_is_compiled_or_refused(nodes: Any, components: Any, disabled: str, request: Any) -> None:
    try:
        source = parse({"name": "p", "entry_points": nodes, "components": components, "disabled": disabled})
    except Invalid:
        return
    overrides = Overrides(parameters=request, fs_name="work")
    found = problems(source, overrides, Limits())
    if found:
        with pytest.raises(Invalid) as raised:
            compile_plan(source, overrides, Limits())
        assert raised.value.message == found[0].message
    else:
        plan = compile_plan(source, overrides, Limits())
        assert set(plan.top) == set(nodes)
