"""Building pipelines: who belongs where, also when several are built at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.pipeline import DAG, Artifact, ContainerStep, Pipeline
from paddleflow.pipeline.components import open_dag
from tests.pipeline.documents import accepted


def test_full_names() -> None:
    def build() -> None:
        with DAG("d") as dag:
            names.append(ContainerStep("s", loop_argument=[1]).full_name)
            with DAG("e"):
                step = ContainerStep("t", parameters={"p": 1}, outputs={"o": Artifact()}, loop_argument=[1])
        names.append(dag.full_name)
        names.extend(str(each) for each in (step.parameters["p"], step.outputs["o"], step.loop_argument.item))

    names: list[str] = []
    Pipeline(name="p")(build)()
    assert names == [
        "PF-ENTRY-POINT.d.s",
        "PF-ENTRY-POINT.d",
        "{{parameter: PF-ENTRY-POINT.d.e.t.p}}",
        "{{artifact: PF-ENTRY-POINT.d.e.t.o}}",
        "{{loop: PF-ENTRY-POINT.d.e.t.PF_LOOP_ARGUMENT}}",
    ]
    assert ContainerStep("alone").full_name == "alone"


def test_each_call_is_a_pipeline_of_its_own() -> None:
    base = Pipeline(name="p", env={"A": "1"}, parallelism=2, docker_env="x")

    @base
    def build(count: int) -> None:
        """How it is built."""
        for at in range(count):
            ContainerStep(f"s{at}")

    base.set_post_process(ContainerStep("post"))
    one, two = build(1), build(count=2)
    one.add_env({"B": "2"})
    assert list(one.entry_points) == ["s0"]
    assert list(two.entry_points) == ["s0", "s1"]
    assert two.env == {"A": "1"}
    assert base.env == {"A": "1"}
    assert (two.parallelism, two.docker_env) == (2, "x")
    assert two.get_post_process() is base.get_post_process()
    assert build.__doc__ == "How it is built."
    assert not base.entry_points


def test_a_pipeline_built_inside_another_is_not_part_of_it() -> None:
    inner = Pipeline(name="inner")(lambda: ContainerStep("in"))
    built: list[Pipeline] = []

    def build() -> None:
        ContainerStep("before")
        built.append(inner())
        ContainerStep("after")

    outer = Pipeline(name="outer")(build)()
    assert list(outer.entry_points) == ["before", "after"]
    assert list(built[0].entry_points) == ["in"]


def test_a_failed_build_leaves_nothing_open() -> None:
    def build() -> None:
        with DAG("d"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        Pipeline(name="p")(build)()
    assert ContainerStep("free").parent is None


def test_a_step_that_could_not_be_made_is_not_there() -> None:
    def build() -> None:
        with pytest.raises(Exception, match="timeout"):
            ContainerStep("s", timeout=-1)
        ContainerStep("s", timeout=1)

    assert list(Pipeline(name="p")(build)().entry_points) == ["s"]


def test_threads_do_not_mix_their_pipelines() -> None:
    """All threads are inside their pipelines, at the same depth, at the same time."""
    count = 8
    meeting = threading.Barrier(count, timeout=60)

    def build(mine: int) -> None:
        for at in range(5):
            meeting.wait()
            ContainerStep(f"s-{mine}-{at}")
            with DAG(f"d-{mine}-{at}"):
                meeting.wait()
                ContainerStep(f"in-{mine}-{at}")

    make = Pipeline(name="p")(build)
    with ThreadPoolExecutor(count) as pool:
        pipelines = list(pool.map(make, range(count)))
    for mine, pipeline in enumerate(pipelines):
        document = pipeline.compile()["entry_points"]
        assert list(document) == [f"{kind}-{mine}-{at}" for at in range(5) for kind in ("s", "d")]
        assert all(list(document[f"d-{mine}-{at}"]["entry_points"]) == [f"in-{mine}-{at}"] for at in range(5))


def test_tasks_do_not_mix_their_pipelines() -> None:
    async def build(mine: int) -> list[str]:
        with DAG(f"d{mine}") as dag:
            for at in range(3):
                await asyncio.sleep(0)
                ContainerStep(f"s{mine}-{at}")
        return list(dag.entry_points)

    async def both() -> list[list[str]]:
        return await asyncio.gather(build(0), build(1))

    assert asyncio.run(both()) == [[f"s{mine}-{at}" for at in range(3)] for mine in range(2)]


@st.composite
def graphs(draw: st.DrawFn) -> Pipeline:
    """Random nested DAGs whose steps use, in any field, anything that was made before and may be used there."""
    budget = draw(st.integers(1, 12))
    steps: list[ContainerStep] = []

    def reachable(step: ContainerStep) -> bool:
        return step.parent is not None and any(step.parent is dag for dag in open_dags)

    def fill() -> None:
        nonlocal budget
        made = 0
        while budget > 0 and (made == 0 or draw(st.booleans())):
            budget -= 1
            made += 1
            name = f"n{budget}"
            if len(open_dags) < 4 and draw(st.integers(0, 2)) == 0:
                with DAG(name, loop_argument=draw(st.sampled_from([None, [1, 2]]))) as dag:
                    open_dags.append(dag)
                    budget += 1
                    fill()
                    open_dags.pop()
            else:
                steps.append(one_step(name))

    def one_step(name: str) -> ContainerStep:
        step = ContainerStep(name, parameters={"p": budget, "l": [1, 2]}, outputs={"o": Artifact(), "r": Artifact()})
        artifacts = [artifact for other in steps for artifact in other.outputs.values()]
        values = [value for other in steps if reachable(other) for value in other.parameters.values()]
        if artifacts and draw(st.booleans()):
            step.inputs["i"] = draw(st.sampled_from(artifacts))
        if artifacts and draw(st.booleans()):
            step.command = f"run {draw(st.sampled_from(artifacts))} {step.outputs['o']}"
        if values and draw(st.booleans()):
            step.parameters["q"] = draw(st.sampled_from(values))
            step.env["V"] = draw(st.sampled_from(values))
        if steps and draw(st.booleans()):
            step.after(draw(st.sampled_from(steps)))
        if open_dags[-1].loop_argument is not None:
            step.env["ITEM"] = str(open_dags[-1].loop_argument.item)
        return step

    open_dags: list[DAG] = []

    def build() -> None:
        root = open_dag()
        assert root is not None
        open_dags.append(root)
        fill()

    return Pipeline(name="p")(build)()


@given(graphs())
def test_whatever_can_be_written_compiles_to_what_a_server_takes(pipeline: Pipeline) -> None:
    document = pipeline.compile()
    assert document == pipeline.compile()
    plan = accepted(document)
    assert {f"PF-ENTRY-POINT.{path}" for path in plan.nodes} == set(_all_names(pipeline))


def _all_names(pipeline: Pipeline) -> Iterator[str]:
    waiting = list(pipeline.entry_points.values())
    while waiting:
        component = waiting.pop()
        yield component.full_name
        if isinstance(component, DAG):
            waiting.extend(component.entry_points.values())


def test_importing_the_language_is_light() -> None:
    code = (
        "import sys, paddleflow.pipeline;"
        "heavy = {'yaml', 'httpx', 'pydantic', 'paddleflow.sdk.client', 'paddleflow.documents'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
