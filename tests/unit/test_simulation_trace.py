"""Traces: what is accepted, and that everything else is refused by row, column and fix."""

from __future__ import annotations

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import Priority
from paddleflow.simulation.synthetic import Recipe, make_trace, spell_trace
from paddleflow.simulation.trace import read_trace

OWN = "submit,duration,gpus"


def lines(text: str) -> list[str]:
    return [line + "\n" for line in text.strip().split("\n")]


def test_own_format() -> None:
    jobs = read_trace(
        lines(
            "id,submit,duration,gpus,cpus,memory,queue,priority,tasks,min_tasks,max_tasks,limit\n"
            "a,100,60,1,500m,2Gi,team,high,2,1,4,90\n"
            "\n"
            ",2000-01-01 00:00:00,1.5,0,2,,,,,,,\n"
        )
    )
    assert [job.id for job in jobs] == ["a", "job-2"]
    first, second = jobs
    assert (first.submit_s, first.duration_s, first.gpus, first.cpu_milli) == (0.0, 60.0, 1, 500)
    assert (first.memory_bytes, first.queue, first.priority) == (2 << 30, "team", Priority.HIGH)
    assert (first.tasks, first.min_tasks, first.max_tasks, first.limit_s) == (2, 1, 4, 90.0)
    assert first.is_elastic
    assert second.submit_s == 946684800 - 100
    assert second.tasks is None and second.limit_s is None and not second.is_elastic


def test_philly_by_its_columns() -> None:
    text = (
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,16,2951.0,6214e9\n"
    )
    with pytest.raises(Invalid, match=r"row 2 .* before row 1; .*--sort"):
        read_trace(lines(text))
    jobs = read_trace(lines(text), sort=True)
    assert [(job.queue, job.submit_s, job.gpus) for job in jobs] == [("6214e9", 0.0, 16), ("11cb48", 2932.0, 1)]


def test_openb_by_its_columns() -> None:
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    rows = "p0,12000,16384,1,460,,LS,Running,0,500,100\np1,6000,12288,0,0,,BE,Pending,7,107,"
    first, second = read_trace(lines(f"{head}\n{rows}"))
    assert (first.id, first.gpus, first.cpu_milli, first.memory_bytes, first.queue) == ("p0", 1, 12000, 16 << 30, "ls")
    assert (first.duration_s, second.duration_s) == (400.0, 100.0)
    with pytest.raises(Invalid, match=r"row 1 .*deletion_time"):
        read_trace(lines(f"{head}\np0,1,1,1,0,,LS,Running,10,5,10"))


def test_limit_takes_the_earliest() -> None:
    text = f"{OWN}\n5,1,1\n3,1,1\n4,1,1"
    assert [job.row for job in read_trace(lines(text), sort=True, limit=2)] == [2, 3]
    assert [job.row for job in read_trace(lines(f"{OWN}\n1,1,1\n2,1,1\n0,1,1"), limit=2)] == [1, 2]


BAD = [
    ("", "submit, duration, gpus"),
    ("submit,gpus\n1,1", "no column duration"),
    (f"{OWN},speed\n1,1,1,1", "column speed"),
    (f"{OWN},gpus\n1,1,1,1", "gpus twice"),
    (OWN, "no rows"),
    (f"{OWN}\n1,1", r"row 1 \(line 2\).* 2 values .* 3 columns"),
    (f"{OWN}\n1,1,1\n2,,1", r"row 2 \(line 3\).*column duration is empty"),
    (f"{OWN}\n1,nan,1", r"row 1 .*column duration is \[nan\]"),
    (f"{OWN}\n1,inf,1", r"column duration is \[inf\]"),
    (f"{OWN}\n1,1e300,1", "column duration .*seconds are wanted"),
    (f"{OWN}\n1,-5,1", "column duration .*negative"),
    (f"{OWN}\n1,abc,1", "column duration .*not a number"),
    (f"{OWN}\nyesterday,1,1", "column submit .*not a number"),
    (f"{OWN}\n2017-13-40 00:00:00,1,1", "column submit .*YYYY-MM-DD"),
    (f"{OWN}\n,1,1", "column submit is empty"),
    (f"{OWN}\n1,1,1.5", "column gpus .*whole number"),
    (f"{OWN}\n1,1,-1", "column gpus .*negative"),
    (f"{OWN}\n1,1,0", "column gpus is 0 .*asks for nothing"),
    (f"{OWN},cpus\n1,1,1,lots", "column cpus is not an amount"),
    (f"{OWN},priority\n1,1,1,9", "column priority .*VERY_LOW"),
    (f"{OWN},tasks\n1,1,1,0", "column tasks .*from 1"),
    (f"{OWN},min_tasks,max_tasks\n1,1,1,0,4", "column min_tasks .*from 1"),
    (f"{OWN},min_tasks,max_tasks\n1,1,1,5,4", "column max_tasks is 4, .*less than min_tasks, 5"),
    (f"{OWN},tasks,min_tasks,max_tasks\n1,1,1,9,1,4", "column tasks is 9, .*between"),
    (f"{OWN},id\n1,1,1,a\n1,1,1,a", "row 2 .*column id .*as in row 1"),
    (f"{OWN}\n5,1,1\n4,1,1", "row 2 .*--sort"),
]


@pytest.mark.parametrize(("text", "told"), BAD)
def test_bad_traces_name_row_column_and_fix(text: str, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        read_trace(lines(text))


def test_binary_is_not_a_trace() -> None:
    with pytest.raises(Invalid):
        read_trace(["a\0b\n", "\0\n"])


def test_synthetic_traces_read_back_as_they_were() -> None:
    jobs = make_trace(Recipe(jobs=200, elastic_share=0.3), seed=3)
    assert read_trace(list(spell_trace(jobs))) == jobs
    assert jobs == make_trace(Recipe(jobs=200, elastic_share=0.3), seed=3)
    assert jobs != make_trace(Recipe(jobs=200, elastic_share=0.3), seed=4)
    assert {job.queue for job in jobs} == {f"tenant-{number}" for number in range(1, 5)}
    elastic = [job for job in jobs if job.is_elastic]
    assert 30 < len(elastic) < 90
    assert {job.gpus for job in jobs} >= {1, 8}


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(jobs=0),
        Recipe(tenants=0),
        Recipe(gpus_per_node=0),
        Recipe(elastic_share=1.5),
        Recipe(whole_node_share=-0.1),
        Recipe(mean_gap_s=0),
    ],
)
def test_bad_recipes(recipe: Recipe) -> None:
    with pytest.raises(Invalid):
        make_trace(recipe, seed=1)
