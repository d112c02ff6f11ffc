"""Plans survive being stored: whatever the plan, what is read equals what was written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeKind, Value
from paddleflow.planning.codec import dump_plan, load_plan
from paddleflow.planning.plan import (
    ArtifactRef,
    CachePolicy,
    LoopArtifact,
    LoopItems,
    LoopParameter,
    Mount,
    Plan,
    PlanNode,
    Retry,
    Scope,
)

texts = st.text(max_size=6)
names = st.text(min_size=1, max_size=6)
values: st.SearchStrategy[Value] = st.recursive(
    st.one_of(texts, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
some_texts = st.lists(texts, max_size=3).map(tuple)
refs = st.builds(ArtifactRef, node=texts, name=texts)
mounts = st.builds(Mount, name=texts, mount_path=texts, sub_path=texts, read_only=st.booleans())
caches = st.builds(
    CachePolicy,
    enable=st.booleans(),
    expires_after_s=st.integers(-1, 10**6),
    scopes=st.lists(st.builds(Scope, fs_name=texts, path=texts), max_size=2).map(tuple),
)
loops = st.one_of(
    st.none(),
    st.builds(LoopItems, items=st.lists(values, max_size=3).map(tuple)),
    st.builds(LoopParameter, name=texts),
    st.builds(LoopArtifact, name=texts),
)
numbers = st.floats(0, 10**6)
nodes = st.builds(
    PlanNode,
    path=names,
    name=names,
    kind=st.sampled_from(NodeKind),
    parent=texts,
    deps=some_texts,
    disabled=st.booleans(),
    loop=loops,
    condition=texts,
    parameters=st.dictionaries(texts, values, max_size=2),
    inputs=st.dictionaries(texts, refs, max_size=2),
    outputs=st.dictionaries(texts, st.none() | refs, max_size=2),
    children=some_texts,
    command=texts,
    docker_env=texts,
    env=st.dictionaries(texts, texts, max_size=2),
    cache=caches,
    mounts=st.lists(mounts, max_size=2).map(tuple),
    retry=st.builds(Retry, times=st.integers(0, 100), backoff_s=numbers),
    timeout_s=st.none() | numbers,
)
plans = st.builds(
    Plan,
    name=texts,
    nodes=st.lists(nodes, max_size=3).map(lambda found: {node.path: node for node in found}),
    top=some_texts,
    post_process=texts,
    strategy=texts,
    parallelism=st.integers(1, 1000),
    docker_env=texts,
    disabled=texts,
    main_fs=st.none() | mounts,
)


@settings(max_examples=60)
@given(plans)
def test_what_is_read_is_what_was_written(plan: Plan) -> None:
    stored = dump_plan(plan)
    read = load_plan(stored)
    assert read == plan
    assert list(read.nodes) == list(plan.nodes)
    assert dump_plan(read) == stored
    assert stored.isascii()


def test_what_has_its_usual_value_is_left_out() -> None:
    node = PlanNode(path="a", name="a", kind=NodeKind.STEP)
    stored = json.loads(dump_plan(Plan(name="p", nodes={"a": node}, top=("a",))))
    assert stored["version"] == 1
    assert stored["nodes"] == [{"path": "a", "name": "a", "kind": "step"}]


@pytest.mark.parametrize("text", ['{"version":2}', '{"version":"1"}', "{}", "[]", "null"])
def test_an_unknown_version_is_refused_and_the_known_ones_named(text: str) -> None:
    with pytest.raises(Invalid, match=r"this release knows: 1$"):
        load_plan(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"version":1}',
        '{"version":1,"name":"p","top":5,"main_fs":null,"nodes":[]}',
        '{"version":1,"nodes":[{"path":"a","name":"a","kind":"tree"}]}',
        '{"version":1,"nodes":[{"path":"a","name":"a","kind":"step","loop":{"over":1}}]}',
        '{"version":1,"nodes":["a"]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_plan_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="the stored plan is"):
        load_plan(text)
