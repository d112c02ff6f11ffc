"""The exact command line and environment of every task, for one small job of each framework.

``PADDLEFLOW_WRITE_GOLDEN=1 pytest tests/unit/test_frameworks_launches.py`` writes them anew; read the difference.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Unavailable
from paddleflow.domain.ids import NodeName, TaskId
from paddleflow.domain.jobs import Address, Elasticity, Framework, Job, JobSpec, Placement, TaskLaunch
from paddleflow.frameworks import check, launches_of, ports_per_task
from paddleflow.frameworks.paddle_trainers import Trainer, launcher_environment, trainer_environment
from tests.unit.framework_jobs import book_of, member, placed, spec

GOLDEN = Path(__file__).parent / "golden" / "frameworks"
ELASTIC = Elasticity(least=1, most=4)

JOBS: dict[str, JobSpec] = {
    "paddle-ps": spec(Framework.PADDLE, member("pserver", 2, "python serve.py"), member("worker", 2)),
    "paddle-collective": spec(Framework.PADDLE, member("worker", 2)),
    "paddle-launcher": spec(
        Framework.PADDLE, member("worker", 2, "python -m paddle.distributed.launch", args=("train.py", "--lr", "1"))
    ),
    "paddle-elastic": spec(Framework.PADDLE, member("worker", 2), elastic=ELASTIC),
    "paddle-etcd": spec(
        Framework.PADDLE,
        member("worker", 2, "fleetrun train.py", env={"PADDLE_ELASTIC_SERVER": "10.0.0.9:2379"}),
        elastic=ELASTIC,
    ),
    "pytorch": spec(Framework.PYTORCH, member("master"), member("worker", 2)),
    "pytorch-elastic": spec(Framework.PYTORCH, member("worker", 2, "torchrun train.py"), elastic=ELASTIC),
    "tensorflow": spec(Framework.TENSORFLOW, member("master"), member("pserver"), member("worker", 2)),
    "mpi": spec(Framework.MPI, member("master", 1, "mpirun -np 4 ./prog"), member("worker", 2, "")),
    "ray": spec(Framework.RAY, member("master", args=("num-cpus: '0'",)), member("worker", 2, "")),
    "spark": spec(
        Framework.SPARK,
        member(
            "driver",
            command="",
            env={
                "PF_JOB_SPARK_MAIN_FILE": "app.jar",
                "PF_JOB_SPARK_MAIN_CLASS": "org.example.Main",
                "PF_JOB_SPARK_ARGUMENTS": "one 'two words'",
            },
        ),
        member("executor", 2, ""),
    ),
}


def launched(asked: JobSpec, **placing: int) -> tuple[TaskLaunch, ...]:
    check(asked)
    job = placed(asked, **placing)
    return launches_of(job, book_of(job, ports_per_task(asked)), secret="of the job")


def spelt(launches: tuple[TaskLaunch, ...]) -> str:
    tasks = {launch.task_id: {"argv": launch.argv, "env": dict(sorted(launch.env.items()))} for launch in launches}
    return json.dumps(tasks, indent=2) + "\n"


@pytest.mark.parametrize("name", JOBS)
def test_launches_are_the_golden_ones(name: str) -> None:
    found = spelt(launched(JOBS[name]))
    file = GOLDEN / f"{name}.json"
    if os.environ.get("PADDLEFLOW_WRITE_GOLDEN"):
        file.write_text(found)
    assert found == file.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(JOBS)


@pytest.mark.parametrize("name", JOBS)
def test_the_secret_is_in_no_command_line(name: str) -> None:
    for launch in launched(JOBS[name]):
        assert "of the job" not in " ".join(launch.argv)
        assert launch.env["PF_JOB_SECRET"] == "of the job"


@pytest.mark.parametrize("name", JOBS)
def test_an_unknown_address_is_worth_another_try(name: str) -> None:
    with pytest.raises(Unavailable, match="not known yet"):
        launches_of(placed(JOBS[name]), {})


def with_indices(asked: JobSpec, indices: list[int]) -> Job:
    placements = tuple(
        Placement(task_id=TaskId(f"job-a-worker-{index}"), role="worker", index=index, node=NodeName("node-1"))
        for index in indices
    )
    return replace(placed(asked), placements=placements)


@given(indices=st.lists(st.integers(0, 9), min_size=2, max_size=6, unique=True))
def test_ranks_are_dense_whatever_indices_are_left(indices: list[int]) -> None:
    job = with_indices(JOBS["pytorch-elastic"], indices)
    launches = launches_of(job, book_of(job, 2))
    assert [launch.env["PF_TASK_INDEX"] for launch in launches] == [str(index) for index in sorted(indices)]
    assert [launch.env["RANK"] for launch in launches] == [str(rank) for rank in range(len(indices))]
    assert {launch.env["WORLD_SIZE"] for launch in launches} == {str(len(indices))}
    assert len({launch.env["MASTER_PORT"] for launch in launches}) == 1
    assert [launch.env["PET_RDZV_CONF"].split(",")[0] for launch in launches] == ["is_host=1"] + ["is_host=0"] * (
        len(indices) - 1
    )


def test_a_grown_job_gives_newcomers_the_job_as_it_is_now() -> None:
    before = launched(JOBS["pytorch-elastic"])
    job = placed(JOBS["pytorch-elastic"], counts={"worker": 4})
    after = launches_of(job, book_of(job, 2))
    assert len(before) == 2
    assert [launch.env["PF_WORLD_SIZE"] for launch in after] == ["4"] * 4
    assert {launch.env["PET_NNODES"] for launch in (*before, *after)} == {"1:4"}


def test_several_gpus_are_several_processes() -> None:
    torch = launched(JOBS["pytorch-elastic"], gpus=2)
    assert {launch.env["PET_NPROC_PER_NODE"] for launch in torch} == {"2"}
    assert [launch.gpus for launch in torch] == [(0, 1), (2, 3)]
    paddle = launched(JOBS["paddle-collective"], gpus=2)
    assert {launch.env["FLAGS_selected_gpus"] for launch in paddle} == {"0,1"}
    assert all("PADDLE_DISTRI_BACKEND" not in launch.env for launch in paddle)
    (mpirun, *_) = launched(JOBS["mpi"], gpus=2)
    assert [worker["slots"] for worker in json.loads(mpirun.env["PF_MPI_WORKERS"])] == [2, 2]


def test_the_launcher_of_paddle_does_not_see_the_endpoints() -> None:
    """It would count hosts instead of tasks, and tasks of one host would each run alone."""
    for launch in launched(JOBS["paddle-launcher"]):
        assert "PADDLE_TRAINER_ENDPOINTS" not in launch.env
        assert launch.env["PADDLE_NNODES"] == "2"


def test_a_script_that_calls_the_launcher_can_drop_the_endpoints() -> None:
    asked = spec(Framework.PADDLE, member("worker", 2, "bash run.sh", env={"PADDLE_TRAINER_ENDPOINTS": ""}))
    for launch in launched(asked):
        assert "PADDLE_TRAINER_ENDPOINTS" not in launch.env


def test_members_of_one_role_are_one_row_of_ranks() -> None:
    asked = spec(Framework.PYTORCH, member("worker", 1, "first"), member("worker", 2, "second"))
    job = with_indices(asked, [0, 1, 2])
    launches = launches_of(job, book_of(job, 2))
    assert [launch.argv[-1] for launch in launches] == ["first", "second", "second"]
    assert [launch.env["RANK"] for launch in launches] == ["0", "1", "2"]


def test_addresses_of_other_hosts_and_of_the_sixth_version() -> None:
    job = placed(JOBS["mpi"])
    book = {task: Address(host="fd00::1", ports=address.ports) for task, address in book_of(job, 1).items()}
    launches = launches_of(job, book)
    assert launches[0].env["PF_TASK_ENDPOINT"] == "[fd00::1]:20000"
    assert "OMPI_MCA_btl" not in launches[0].env, "only tasks of one host need loopback"


@given(size=st.integers(1, 8), generation=st.integers(0, 9), data=st.data())
def test_trainers_agree_on_each_other(size: int, generation: int, data: st.DataObject) -> None:
    trainers = [Trainer(host="127.0.0.1", ports=tuple(range(n * 4, n * 4 + 4))) for n in range(size)]
    rank = data.draw(st.integers(0, size - 1))
    mine = trainer_environment(trainers, rank, generation)
    endpoints = mine["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(endpoints)) == size
    assert endpoints[rank] == mine["PADDLE_CURRENT_ENDPOINT"]
    assert mine["PADDLE_CURRENT_ENDPOINT"].endswith(f":{mine['PADDLE_PORT']}")
    later = trainer_environment(trainers, rank, generation + 1)
    assert not set(later["PADDLE_TRAINER_ENDPOINTS"].split(",")) & set(endpoints), "nobody meets the generation before"
    assert launcher_environment(trainers, rank)["PADDLE_MASTER"] not in endpoints
