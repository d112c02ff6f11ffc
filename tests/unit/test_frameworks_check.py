"""Which jobs each framework takes, and the words in which it refuses the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import Elasticity, Framework, JobSpec
from paddleflow.frameworks import check, deciders, ports_per_task, supports
from tests.unit.framework_jobs import member, spec

PADDLE, TORCH, TF = Framework.PADDLE, Framework.PYTORCH, Framework.TENSORFLOW
MPI, RAY, SPARK = Framework.MPI, Framework.RAY, Framework.SPARK


def elastic(least: int = 1, most: int = 4, **more: object) -> Elasticity:
    return replace(Elasticity(least=least, most=most), **more)


GOOD = [
    spec(PADDLE, member("worker", 2)),
    spec(PADDLE, member("pworker", 2)),
    spec(PADDLE, member("worker", 1), member("worker", 1)),
    spec(PADDLE, member("pserver", 2), member("worker", 1)),
    spec(PADDLE, member("master"), member("worker", 1)),
    spec(PADDLE, member("worker", 2), elastic=elastic()),
    spec(PADDLE, member("worker", 1), elastic=elastic(sizes=(1, 2, 4))),
    spec(TORCH, member("worker", 2)),
    spec(TORCH, member("master"), member("worker")),
    spec(TORCH, member("master"), member("worker"), elastic=elastic()),
    spec(TF, member("worker", 2)),
    spec(TF, member("master"), member("pserver"), member("worker", 3)),
    spec(MPI, member("master"), member("worker", command="")),
    spec(MPI, member("master", command="", args=("mpirun", "ls")), member("worker", command="")),
    spec(RAY, member("master", args=("num-cpus: '1'", "resources: {}")), member("worker", command="")),
    spec(SPARK, member("driver"), member("executor", 2, command="")),
    spec(SPARK, member("driver", command="", env={"PF_JOB_SPARK_MAIN_FILE": "a.py"})),
    spec(PADDLE, member("worker", 2, command="", args=("python", "train.py"))),
    JobSpec(members=(member(command="", args=("ls",)),)),
    JobSpec(members=(member(command=""),), extension_template={"kind": "PyTorchJob"}),
    replace(spec(TORCH, member("worker", 2, command="")), extension_template={"kind": "PyTorchJob"}),
]

BAD = [
    (spec(PADDLE), "members", "add a member with role worker"),
    (spec(PADDLE, member("worker", 1)), "members[0].replicas", "at least 2"),
    (spec(PADDLE, member("pserver", 1)), "members", "needs a worker"),
    (spec(PADDLE, member("worker", 2), member("chef")), "members[1].role", "master, pserver, worker"),
    (spec(PADDLE, member("worker", 0)), "members[0].replicas", "at least 1"),
    (spec(PADDLE, member("master", 2), member("worker", 2)), "members[0].replicas", "one master"),
    (spec(TORCH, member("pserver"), member("worker")), "members[0].role", "master, worker"),
    (spec(TORCH, member("worker", 1)), "members[0].replicas", "single job"),
    (spec(TF, member("master"), member("master"), member("worker")), "members[1].replicas", "one master"),
    (spec(MPI, member("worker", 2)), "members", "needs a master"),
    (spec(MPI, member("master")), "members", "needs a worker"),
    (spec(MPI, member("master", command=""), member("worker")), "members[0].command", "give mpirun"),
    (spec(RAY, member("worker", 2)), "members", "needs a master"),
    (spec(RAY, member("master", args=("train.py",)), member("worker")), "members[0].args[0]", "name: value"),
    (spec(RAY, member("master", command=""), member("worker")), "members[0].command", "give the program"),
    (spec(SPARK, member("executor", 2)), "members", "needs a driver"),
    (spec(SPARK, member("driver", 2)), "members[0].replicas", "one driver"),
    (spec(SPARK, member("driver", command="")), "members[0].command", "PF_JOB_SPARK_MAIN_FILE"),
    (
        spec(SPARK, member("driver", env={"PF_JOB_SPARK_ARGUMENTS": "'a"})),
        "members[0].env.PF_JOB_SPARK_ARGUMENTS",
        "quotes",
    ),
    (spec(SPARK, member("driver"), member("executor", memory="512Mi")), "members[1].flavour.mem", "at least"),
    (spec(TF, member("worker", 2), elastic=elastic()), "elastic", "pytorch jobs can"),
    (spec(MPI, member("master"), member("worker", 2), elastic=elastic()), "elastic", "cannot change its size"),
    (spec(PADDLE, member("pserver"), member("worker", 2), elastic=elastic()), "elastic", "workers only"),
    (spec(TORCH, member("worker", 2), elastic=elastic(least=0)), "elastic.min", "below 1"),
    (spec(TORCH, member("worker", 2), elastic=elastic(3, 2)), "elastic.max", "below elastic.min 3"),
    (spec(TORCH, member("worker", 5), elastic=elastic()), "members[0].replicas", "between"),
    (spec(TORCH, member("worker", 2), elastic=elastic(3, 4)), "members[0].replicas", "between"),
    (spec(TORCH, member("worker", 2), elastic=elastic(sizes=(1, 4, 2))), "elastic.sizes", "rise"),
    (spec(TORCH, member("worker", 2), elastic=elastic(sizes=(1, 1, 4))), "elastic.sizes", "rise"),
    (spec(TORCH, member("worker", 2), elastic=elastic(sizes=(2, 4))), "elastic.sizes", "begin with elastic.min 1"),
    (spec(TORCH, member("worker", 2), elastic=elastic(sizes=(1, 2))), "elastic.sizes", "end with elastic.max 4"),
    (spec(TORCH, member("master"), member("worker"), elastic=elastic(role="master")), "elastic.role", "only worker"),
    (
        spec(TORCH, member("worker"), member("worker"), elastic=elastic()),
        "elastic.role",
        "exactly one member",
    ),
    (spec(TORCH, member("pworker", 2), elastic=elastic()), "elastic.role", "0 have it"),
    (
        spec(TORCH, member("worker", 2), elastic=elastic(rescale_cost_s=float("nan"))),
        "elastic.rescaleCostSeconds",
        "zero or more",
    ),
    (JobSpec(members=(member(command=""),)), "command", "it is empty"),
    (JobSpec(members=(member(command=" \t"),)), "command", "it is blank"),
    (spec(PADDLE, member("worker", 2, command="")), "members[0].command", "it is empty"),
    (spec(TF, member("master"), member("worker", command="")), "members[1].command", "it is empty"),
    (spec(MPI, member("master"), member("worker", command=" ")), "members[1].command", "it is blank"),
    (spec(RAY, member("master", command=" "), member("worker")), "members[0].command", "it is blank"),
]


@pytest.mark.parametrize("asked", GOOD)
def test_taken(asked: JobSpec) -> None:
    check(asked)


@pytest.mark.parametrize(("asked", "place", "words"), BAD)
def test_refused_with_the_field_and_the_fix(asked: JobSpec, place: str, words: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check(asked)
    assert refusal.value.details["field"] == place
    assert words in refusal.value.message
    assert refusal.value.code == "JobCreateFailed"


def test_what_is_supported() -> None:
    assert all(supports(framework) for framework in Framework)
    assert not supports("mxnet")
    assert not supports("aitj")


@pytest.mark.parametrize(
    ("asked", "roles"),
    [
        (spec(PADDLE, member("pserver"), member("worker")), {"worker"}),
        (spec(PADDLE, member("pworker", 2)), {"pworker"}),
        (spec(TORCH, member("master"), member("worker")), {"master", "worker"}),
        (spec(TF, member("master"), member("pserver"), member("worker")), {"master", "worker"}),
        (spec(MPI, member("master"), member("worker")), {"master"}),
        (spec(RAY, member("master"), member("worker")), {"master"}),
        (spec(SPARK, member("driver"), member("executor")), {"driver"}),
    ],
)
def test_whose_success_is_the_job_s(asked: JobSpec, roles: set[str]) -> None:
    assert deciders(asked) == roles
    assert ports_per_task(asked) > 0


@given(
    least=st.integers(-2, 6),
    most=st.integers(-2, 6),
    replicas=st.integers(-1, 7),
    sizes=st.lists(st.integers(-1, 7), max_size=4).map(tuple),
)
def test_an_accepted_range_is_one_the_scheduler_can_use(
    least: int, most: int, replicas: int, sizes: tuple[int, ...]
) -> None:
    asked = Elasticity(least=least, most=most, sizes=sizes)
    try:
        check(spec(TORCH, member("worker", replicas), elastic=asked))
    except Invalid:
        return
    assert 1 <= least <= replicas <= most
    assert asked.allowed[0] == least
    assert asked.allowed[-1] == most
    assert list(asked.allowed) == sorted(set(asked.allowed))
