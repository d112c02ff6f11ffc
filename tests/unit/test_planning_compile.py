"""What compiling makes of pipelines: one golden plan for each part of the language, and the rules one by one.

``PADDLEFLOW_WRITE_GOLDEN=1 pytest tests/unit/test_planning_compile.py`` writes the plans anew; read the difference.
"""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.documents import load
from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.check import problems
from paddleflow.planning.codec import dump_plan, load_plan
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import ArtifactRef, CachePolicy, LoopItems, LoopParameter, Mount, Plan, Scope
from paddleflow.planning.source import Limits, Overrides
from tests.planned import with_commands

GOLDEN = Path(__file__).parent / "golden" / "plans"
REQUESTS = {
    "request": Overrides(
        name="renamed",
        docker_env="new:2",
        strategy="continue",
        disabled="d",
        fs_name="work",
        parameters={"plain": "all", "a.rate": "0.25", "a.count": 4, "a.words": '["z"]', "d.b.up": "{{PF_RUN_ID}}"},
    )
}
NOTHING = Overrides()


def plan_of(text: str, overrides: Overrides = NOTHING, limits: Limits | None = None) -> Plan:
    document = load(textwrap.dedent(text))
    return compile_plan(with_commands(parse(document.value, document.lines)), overrides, limits or Limits())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_golden_plans(path: Path) -> None:
    plan = plan_of(path.read_text(), REQUESTS.get(path.stem, NOTHING))
    stored = dump_plan(plan)
    assert load_plan(stored) == plan
    shown = json.dumps(json.loads(stored), indent=1) + "\n"
    golden = path.with_suffix(".json")
    if os.environ.get("PADDLEFLOW_WRITE_GOLDEN"):
        golden.write_text(shown)
    assert shown == golden.read_text()


def assert_sound(plan: Plan) -> None:
    """Parents come before children, dependencies before dependents, and every name leads somewhere."""
    rank = {path: number for number, path in enumerate(plan.nodes)}
    after = (plan.post_process,) if plan.post_process else ()
    inside = [child for node in plan.nodes.values() for child in node.children]
    assert sorted(rank) == sorted([*plan.top, *inside, *after])
    assert not after or list(rank)[-1] == plan.post_process
    for node in plan.nodes.values():
        siblings = plan.nodes[node.parent].children if node.parent else (*plan.top, *after)
        assert node.path in siblings
        assert not node.parent or rank[node.parent] < rank[node.path]
        prefix = node.path.removesuffix(node.name)
        for dep in node.deps:
            assert siblings.index(prefix + dep) < siblings.index(node.path)
        for ref in node.inputs.values():
            producer = plan.nodes[prefix + ref.node] if ref.node else plan.nodes[node.parent]
            assert ref.name in (producer.outputs if ref.node else producer.inputs)
        for made in node.outputs.values():
            assert made is None or made.name in plan.nodes[f"{node.path}.{made.node}"].outputs


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_golden_plan_is_sound(path: Path) -> None:
    assert_sound(load_plan(path.read_text()))


@st.composite
def good_nodes(draw: st.DrawFn, components: tuple[str, ...] = (), levels: int = 2) -> dict[str, Any]:
    """Nodes that depend on, and take things from, those before them, written in any order."""
    nodes: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 5))):
        node: dict[str, Any] = {"parameters": {"p": 1}}
        kind = draw(st.sampled_from(("step", "dag", "reference")))
        if kind == "dag" and levels:
            node["entry_points"] = draw(good_nodes(components, levels - 1))
            child = draw(st.sampled_from(sorted(node["entry_points"])))
            node["artifacts"] = {"output": {"o": f"{{{{{child}.o}}}}"}}
        elif kind == "reference" and components:
            node["reference"] = {"component": draw(st.sampled_from(components))}
        else:
            node["artifacts"] = {"output": ["o"]}
        deps = draw(st.lists(st.sampled_from(sorted(nodes)), max_size=3)) if nodes else []
        node["deps"] = ",".join(deps)
        if deps:
            node["parameters"]["p"] = f"{{{{{deps[0]}.p}}}}"
        if deps and kind != "reference":
            node["artifacts"]["input"] = {"i": f"{{{{ {deps[-1]}.o }}}}"}
        nodes[f"n{number}"] = node
    names = draw(st.permutations(sorted(nodes)))
    return {name: nodes[name] for name in names}


@settings(max_examples=60)
@given(data=st.data())
def test_good_pipelines_become_sound_plans(data: st.DataObject) -> None:
    components: dict[str, Any] = {"c0": {"parameters": {"p": 0}, "artifacts": {"output": ["o"]}}}
    inner = data.draw(good_nodes(("c0",), 1))
    output = {"o": f"{{{{{min(inner)}.o}}}}"}
    components["c1"] = {"parameters": {"p": 0}, "artifacts": {"output": output}, "entry_points": inner}
    components["c2"] = {"reference": {"component": "c1"}, "parameters": {"p": 2}}
    nodes = data.draw(good_nodes(("c0", "c1", "c2")))
    source = with_commands(
        parse({"name": "p", "entry_points": nodes, "components": components, "post_process": {"z": {}}})
    )
    overrides = Overrides(fs_name="work")
    assert problems(source, overrides, Limits()) == ()
    plan = compile_plan(source, overrides, Limits())
    assert_sound(plan)
    assert load_plan(dump_plan(plan)) == plan


def test_among_the_ready_the_one_written_first_comes_first() -> None:
    text = "name: p\nentry_points: {z: {deps: m}, m: {}, a: {}, k: {deps: z}, b: {deps: 'a,m'}}"
    assert plan_of(text).top == ("m", "z", "a", "k", "b")


@pytest.mark.parametrize(("written", "planned"), [("-1", 10), ("0", 10), ("7", 7), ("20", 20), ("5000", 1000)])
def test_parallelism(written: str, planned: int) -> None:
    assert plan_of(f"name: p\nparallelism: {written}\nentry_points: {{}}").parallelism == planned


def test_parallelism_left_out_stays_below_the_limit_too() -> None:
    text = "name: p\nentry_points: {}"
    assert plan_of(text).parallelism == 10
    assert plan_of(text, limits=Limits(parallelism=4)).parallelism == 4


STEP = "name: p\ndocker_env: whole\nentry_points: {a: {docker_env: own}, b: {}}"


def test_a_steps_own_image_wins_and_the_request_replaces_the_one_of_the_whole() -> None:
    plan = plan_of(STEP, Overrides(docker_env="asked"))
    assert (plan.docker_env, plan.nodes["a"].docker_env, plan.nodes["b"].docker_env) == ("asked", "own", "asked")


MAIN = "name: p\nfs_options: {main_fs: {name: work, sub_path: s}}\nentry_points: {}"


def test_the_main_filesystem() -> None:
    assert plan_of("name: p\nentry_points: {}").main_fs is None
    assert plan_of("name: p\nentry_points: {}", Overrides(fs_name="w")).main_fs == Mount(name="w")
    assert plan_of(MAIN, Overrides(fs_name="work")).main_fs == Mount(name="work", sub_path="s")
    nameless = "name: p\nfs_options: {main_fs: {sub_path: s}}\nentry_points: {}"
    assert plan_of(nameless, Overrides(fs_name="w")).main_fs == Mount(name="w", sub_path="s")


def test_another_main_filesystem_than_the_text_names_is_refused() -> None:
    with pytest.raises(Invalid) as raised:
        plan_of(MAIN, Overrides(fs_name="other"))
    assert raised.value.code == "InvalidArguments"
    assert raised.value.message.startswith("fsName [other] is not [work]")


def test_mounts_of_a_step_come_first_and_none_twice() -> None:
    text = """
        name: p
        fs_options: {extra_fs: [{name: a}, {name: b, read_only: true}]}
        entry_points: {s: {extra_fs: [{name: c}, {name: a}, {name: b}]}}
    """
    assert plan_of(text).nodes["s"].mounts == (
        Mount(name="c"),
        Mount(name="a"),
        Mount(name="b"),
        Mount(name="b", read_only=True),
    )


def test_caching() -> None:
    nodes = plan_of((GOLDEN / "cache.yaml").read_text()).nodes
    whole = (Scope(fs_name="work", path="code"), Scope(fs_name="work", path="conf"))
    assert nodes["as-the-whole"].cache == CachePolicy(enable=True, expires_after_s=600, scopes=whole)
    assert nodes["own-expiry"].cache.expires_after_s == -1
    own = (Scope(fs_name="sets", path=""), Scope(fs_name="work", path="conf"), Scope(fs_name="work", path="code"))
    assert nodes["own-scope"].cache.scopes == own
    assert nodes["never"].cache == CachePolicy(enable=False, expires_after_s=600, scopes=whole)
    assert nodes["post_process.notify"].cache == CachePolicy()


def test_a_component_is_copied_for_each_that_refers_to_it() -> None:
    nodes = plan_of((GOLDEN / "components.yaml").read_text()).nodes
    assert nodes["left"].inputs == {"a": ArtifactRef(node="start", name="a")}
    assert nodes["right"].inputs == {"a": ArtifactRef(node="left", name="b")}
    assert nodes["right.first"].inputs == {"a": ArtifactRef(node="", name="a")}
    assert nodes["chain"].parameters == {"script": "run.sh", "n": 2}
    assert (nodes["plain"].docker_env, nodes["left.first"].docker_env) == ("busybox:1", "python:3.11")


def test_the_parameters_of_components_are_out_of_a_requests_reach() -> None:
    text = """
        name: p
        entry_points: {a: {reference: {component: c}, parameters: {x: 1}}, b: {reference: {component: c}}}
        components: {c: {parameters: {x: {type: int, default: 5}}}}
    """
    nodes = plan_of(text, Overrides(parameters={"x": "7"})).nodes
    assert nodes["a"].parameters == {"x": 7}
    assert nodes["b"].parameters == {"x": 5}


FITS: list[tuple[str, Value, Value]] = [
    ("int", 3, 3),
    ("int", "3", 3),
    ("int", "-12", -12),
    ("float", 3, 3),
    ("float", 0.1, 0.1),
    ("float", "0.1", 0.1),
    ("float", "1e-3", 0.001),
    ("string", "3", "3"),
    ("path", "a/b", "a/b"),
    ("list", [1, "x"], [1, "x"]),
    ("list", '[1, "x"]', [1, "x"]),
]


@pytest.mark.parametrize(("type_", "given", "planned"), FITS)
def test_typed_parameters_take_numbers_and_texts_that_read_as_them(type_: str, given: Value, planned: Value) -> None:
    default = {"int": "1", "float": "1.5", "string": "x", "path": "x", "list": "[1]"}[type_]
    text = f"name: p\nentry_points: {{a: {{parameters: {{p: {{type: {type_}, default: {default}}}}}}}}}"
    found = plan_of(text, Overrides(parameters={"p": given})).nodes["a"].parameters["p"]
    assert (found, type(found)) == (planned, type(planned))


MISFITS: list[tuple[str, Value]] = [
    ("int", "3.5"),
    ("int", 3.5),
    ("int", True),
    ("int", ""),
    ("float", "fast"),
    ("float", "nan"),
    ("float", "1_0"),
    ("string", 3),
    ("path", "a b"),
    ("list", "x"),
    ("list", '{"a": 1}'),
    ("list", '["{{PF_RUN_ID}}"]'),
]


@pytest.mark.parametrize(("type_", "given"), MISFITS)
def test_typed_parameters_refuse_what_is_not_their_type(type_: str, given: Value) -> None:
    default = {"int": "1", "float": "1.5", "string": "x", "path": "x", "list": "[1]"}[type_]
    text = f"name: p\nentry_points: {{a: {{parameters: {{p: {{type: {type_}, default: {default}}}}}}}}}"
    with pytest.raises(Invalid) as raised:
        plan_of(text, Overrides(parameters={"p": given}))
    assert raised.value.code == "InvalidPipeline"


def test_an_untyped_parameter_takes_a_text_as_it_is() -> None:
    text = "name: p\nentry_points: {a: {parameters: {p: 1}}}"
    assert plan_of(text, Overrides(parameters={"a.p": "2"})).nodes["a"].parameters == {"p": "2"}


def test_templates_of_a_request_are_checked_like_written_ones() -> None:
    text = "name: p\nentry_points: {a: {parameters: {p: 1}}}"
    with pytest.raises(Invalid, match=r"unsupported SysParamName\[nobody\]"):
        plan_of(text, Overrides(parameters={"p": "{{nobody}}"}))


def test_loops() -> None:
    nodes = plan_of((GOLDEN / "loops.yaml").read_text()).nodes
    assert nodes["list"].loop == LoopItems(items=(1, 2.5, "x", [3, [4]]))
    assert nodes["json"].loop == LoopItems(items=("a", 2, ["b", 3]))
    assert nodes["empty"].loop == LoopItems(items=())
    assert nodes["parameter"].loop == LoopParameter(name="items")


def test_compiling_leaves_the_source_as_it_was() -> None:
    document = load((GOLDEN / "request.yaml").read_text())
    source, again = parse(document.value, document.lines), parse(document.value, document.lines)
    compile_plan(source, REQUESTS["request"], Limits())
    assert source == again


def test_paths_inside_a_filesystem_are_spelled_in_one_way() -> None:
    text = """
        name: p
        fs_options: {main_fs: {name: w, sub_path: ./a//b/}}
        cache: {enable: true, fs_scope: [{name: w, path: "/x, y/, /"}]}
        entry_points: {a: {}}
    """
    plan = plan_of(text)
    assert plan.main_fs == Mount(name="w", sub_path="a/b")
    assert [scope.path for scope in plan.nodes["a"].cache.scopes] == ["x", "y", ""]
