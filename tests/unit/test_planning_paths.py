"""Where artifacts lie: the layout users rely on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.ids import FilesystemId, RunId
from paddleflow.planning.paths import (
    artifact_path,
    dag_id,
    in_container,
    joined,
    run_directory,
    runtime_name,
    runtime_root,
    separate,
)
from paddleflow.planning.plan import Mount
from tests.unit.run_courses import plan_of

RUN = RunId("run-000075")
FS = FilesystemId("fs-alice-data")
PLAN = replace(plan_of(main_fs=Mount(name="data")), name="artifact_example")


def test_the_documented_sample() -> None:
    runtime = runtime_name(runtime_root(PLAN), "preprocess", 0)
    assert runtime == "artifact_example.entry_points.preprocess"
    assert artifact_path(PLAN, RUN, "preprocess", 0, runtime, "train_data") == (
        ".pipeline/run-000075/artifact_example/preprocess-0-037175363b6ef656300d85b2821919a1/train_data"
    )


def test_the_runtime_name_tells_items_apart_after_the_first() -> None:
    root = runtime_root(PLAN)
    assert runtime_name(runtime_name(root, "sub", 2), "train", 0) == "artifact_example.entry_points.sub-2.train"
    assert runtime_name(root, "train", 1) == "artifact_example.entry_points.train-1"
    assert runtime_root(PLAN, post_process=True) == "artifact_example.post_process"


@pytest.mark.parametrize(
    ("sub_path", "directory"),
    [
        ("", ".pipeline/run-000075"),
        ("a/b", "a/b/.pipeline/run-000075"),
        ("./a/b/", "a/b/.pipeline/run-000075"),
        (".", ".pipeline/run-000075"),
    ],
)
def test_the_directory_of_a_run_honours_the_sub_path(sub_path: str, directory: str) -> None:
    plan = replace(PLAN, main_fs=Mount(name="data", sub_path=sub_path))
    assert run_directory(plan, RUN) == directory
    assert artifact_path(plan, RUN, "a", 0, "x", "y").startswith(f"{directory}/artifact_example/a-0-")


@pytest.mark.parametrize(
    ("mount", "path", "seen"),
    [
        (Mount(name="d"), ".pipeline/r/x", "/home/paddleflow/storage/mnt/fs-alice-data/.pipeline/r/x"),
        (Mount(name="d", mount_path="/data"), ".pipeline/r/x", "/data/.pipeline/r/x"),
        (Mount(name="d", mount_path="/data", sub_path="a/b"), "a/b/.pipeline/r/x", "/data/.pipeline/r/x"),
        (
            Mount(name="d", mount_path="/data", sub_path="a"),
            "a/.pipeline/r/x,a/.pipeline/r/y",
            "/data/.pipeline/r/x,/data/.pipeline/r/y",
        ),
        (Mount(name="d", mount_path="/data"), "", ""),
    ],
)
def test_the_path_inside_the_container(mount: Mount, path: str, seen: str) -> None:
    assert in_container(path, mount, FS) == seen


@pytest.mark.parametrize("sub_path", ["", "a", "a,b", ",", "a/b,.pipeline"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_joined_paths_come_apart_again(sub_path: str, count: int) -> None:
    plan = replace(PLAN, main_fs=Mount(name="d", sub_path=sub_path))
    paths = tuple(artifact_path(plan, RUN, "a", seq, f"x-{seq}", "y") for seq in range(count))
    assert separate(joined(paths), plan.main_fs) == paths


def test_a_dag_is_called_after_its_run_and_place() -> None:
    name = dag_id(RUN, "sub[1]")
    assert name.startswith("dag-run-000075-")
    assert len(name.removeprefix("dag-run-000075-")) == 16
    assert name == dag_id(RUN, "sub[1]")
    assert name != dag_id(RUN, "sub[2]")
