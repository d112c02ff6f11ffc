"""Distributed jobs of every framework: the processes really meet, and the log has the proof."""

from __future__ import annotations

import sys

import pytest

from tests.frameworks.training import EXAMPLES, Training, role

pytestmark = pytest.mark.timeout(400)


@pytest.mark.uses("torch")
def test_pytorch_workers_add_up(training: Training) -> None:
    said = training.succeeded(
        training.submit("pytorch", role("worker", 2, f"{training.python} {EXAMPLES}/torch_sum.py"))
    )
    assert "rank 0 of 2 sum 3" in said
    assert "rank 1 of 2 sum 3" in said


@pytest.mark.uses("torch")
def test_a_bare_torchrun_finds_its_peers(training: Training) -> None:
    command = f"{training.bin}/torchrun {EXAMPLES}/torch_sum.py"
    said = training.succeeded(training.submit("pytorch", role("master", 1, command), role("worker", 1, command)))
    assert "rank 0 of 2 sum 3" in said
    assert "rank 1 of 2 sum 3" in said


@pytest.mark.uses("torch")
def test_torchrun_starts_several_processes_a_task(training: Training) -> None:
    command = f"{training.bin}/torchrun {EXAMPLES}/torch_sum.py"
    said = training.succeeded(training.submit("pytorch", role("worker", 2, command, PET_NPROC_PER_NODE="2")))
    assert "rank 3 of 4 sum 10" in said


@pytest.mark.uses("paddlepaddle")
@pytest.mark.parametrize("launcher", ["", "-m paddle.distributed.launch"])
def test_paddle_trainers_add_up(training: Training, launcher: str) -> None:
    command = f"{training.python} {launcher} {EXAMPLES}/paddle_sum.py"
    said = training.succeeded(training.submit("paddle", role("worker", 2, command)))
    assert "rank 0 of 2 sum 3" in said
    assert "rank 1 of 2 sum 3" in said


@pytest.mark.uses("paddlepaddle")
def test_paddle_servers_and_trainers_find_their_places(training: Training) -> None:
    command = f"{training.python} {EXAMPLES}/paddle_roles.py"
    job = training.submit("paddle", role("pserver", 2, command), role("worker", 2, command))
    said = training.succeeded(job)
    assert "trainer 0 of 2" in said
    assert "trainer 1 of 2" in said
    assert said.count("sum 3") == 2, "the trainers met through the meeting point that a server keeps"


@pytest.mark.uses("tensorflow-cpu")
def test_tensorflow_workers_add_up(training: Training) -> None:
    command = f"{training.python} {EXAMPLES}/tensorflow_sum.py"
    said = training.succeeded(training.submit("tensorflow", role("worker", 2, command)))
    assert said.count("replicas 2 sum 3") == 2


@pytest.mark.uses("mpirun", "mpi4py")
def test_mpi_ranks_run_in_the_workers(training: Training) -> None:
    job = training.submit(
        "mpi",
        role("master", 1, f"mpirun -np 4 {training.python} {EXAMPLES}/mpi_sum.py"),
        role("worker", 2, "", cpu="2"),
    )
    said = training.succeeded(job)
    for rank, worker in ((0, 0), (1, 0), (2, 1), (3, 1)):
        assert f"rank {rank} of 4 sum 10 in {job}-worker-{worker}" in said


@pytest.mark.uses("mpirun", "mpi4py")
def test_a_failing_mpi_rank_fails_the_job(training: Training) -> None:
    job = training.submit("mpi", role("master", 1, "mpirun -np 2 sh -c 'exit 3'"), role("worker", 2, ""))
    assert training.ended(job) == "failed"
    assert "exit code 3" in training.job(job)["message"]


@pytest.mark.uses("ray")
def test_ray_works_on_every_node(training: Training) -> None:
    job = training.submit(
        "ray", role("master", 1, f"{training.python} {EXAMPLES}/ray_nodes.py 3"), role("worker", 2, "")
    )
    assert f"ran in {job}-master-0 {job}-worker-0 {job}-worker-1" in training.succeeded(job)


@pytest.mark.uses("pyspark", "java")
def test_spark_uses_every_executor(training: Training) -> None:
    environment = {"PYSPARK_PYTHON": training.python}
    job = training.submit(
        "spark",
        role("driver", 1, f"{training.python} {EXAMPLES}/spark_sum.py 2", **environment),
        role("executor", 2, "", **environment),
    )
    assert f"sum 499500 on {job}-executor-0 {job}-executor-1" in training.succeeded(job)


@pytest.mark.uses("pyspark", "java")
def test_spark_submits_the_main_file(training: Training) -> None:
    environment = {
        "PYSPARK_PYTHON": training.python,
        "PF_JOB_SPARK_MAIN_FILE": f"{EXAMPLES}/spark_sum.py",
        "PF_JOB_SPARK_ARGUMENTS": "1",
    }
    job = training.submit("spark", role("driver", 1, "", **environment))
    assert f"sum 499500 on {job}-driver-0" in training.succeeded(job)


def test_an_unknown_framework_is_refused_with_the_known_ones(training: Training) -> None:
    with pytest.raises(AssertionError, match="paddle, pytorch, tensorflow, mpi, ray, spark"):
        training.submit("mxnet", role("worker", 2, sys.executable))
