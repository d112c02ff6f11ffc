"""Runs that are disturbed at a bad moment: nothing acts that was asked before, and one run's trouble is its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from paddleflow.domain.commands import CreateFilesystem, DeleteRun, RetryRun, StopRun
from paddleflow.domain.errors import Invalid
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import RunId, UserName, filesystem_id
from paddleflow.domain.runs import RunStatus
from paddleflow.planning.advance import advance
from paddleflow.planning.moves import Advance, RunEvent
from paddleflow.planning.plan import Plan
from paddleflow.planning.progress import Progress
from paddleflow.ports.files import FileEntry
from paddleflow.testing.builders import a_node, resources
from paddleflow.testing.platform import InMemoryPlatform

CACHED = """
name: cached
cache: {enable: true}
fs_options: {main_fs: {name: main}}
entry_points:
  make: {command: "make it", artifacts: {output: [made]}}
"""

WIDE = """
name: wide
parallelism: 20
fs_options: {main_fs: {name: main}}
entry_points:
  make: {command: "make it", loop_argument: ITEMS, artifacts: {output: [made]}}
  use:
    command: "use it"
    deps: make
    artifacts: {input: {all: "{{make.made}}"}}
    loop_argument: "{{all}}"
""".replace("ITEMS", str(list(range(20))))


@pytest.fixture
def platform() -> InMemoryPlatform:
    platform = InMemoryPlatform([a_node("node-1", resources("64", "256Gi", gpus=2))])
    platform.ask(CreateFilesystem(name="main", url="local:///data/main"))
    return platform


def main_fs(platform: InMemoryPlatform) -> Filesystem:
    with platform.store.read() as view:
        found = view.filesystems.find(filesystem_id(UserName("root"), "main"))
    assert found is not None
    return found


def test_a_run_that_is_over_touches_no_files_when_the_step_it_waited_for_ends(platform: InMemoryPlatform) -> None:
    first, second = (platform.start_run(CACHED) for _ in range(2))
    assert first in platform.node(second, "make").message
    platform.ask(StopRun(id=second, force=True))
    platform.settle()
    platform.ask(DeleteRun(id=second, check_cache=True))
    platform.settle()
    platform.end_step(first, "make", exit_code=1)
    assert [entry.path for entry in platform.files.walk(main_fs(platform), "") if second in entry.path] == []


def test_a_result_that_is_deleted_between_being_found_and_being_used_is_computed_again(
    platform: InMemoryPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = platform.start_run(CACHED)
    platform.files.write(main_fs(platform), platform.node(first, "make").outputs["made"], b"1")
    platform.end_step(first, "make")
    look = platform.files.entry

    def look_and_lose(fs: Filesystem, path: str) -> FileEntry:
        found = look(fs, path)
        if first in path:
            monkeypatch.undo()
            platform.ask(DeleteRun(id=first, check_cache=True))
        return found

    monkeypatch.setattr(platform.files, "entry", look_and_lose)
    second = platform.start_run(CACHED)
    node = platform.node(second, "make")
    assert (node.status, node.cache_run_id) == ("running", None)
    platform.end_step(second, "make")
    assert platform.run(second).run.status is RunStatus.SUCCEEDED


def test_a_defect_met_in_one_run_ends_that_run_and_no_other(
    platform: InMemoryPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever kind of error it is: a rule that refuses is no outage, and starting again would meet it again."""
    bad = platform.start_run(CACHED)

    def advance_others(plan: Plan, progress: Progress, events: Sequence[RunEvent], now: datetime) -> Advance:
        if progress.facts.run_id == bad:
            raise Invalid("a rule nobody foresaw")
        return advance(plan, progress, events, now)

    monkeypatch.setattr("paddleflow.engine.reactors.runner.advance", advance_others)
    platform.end_step(bad, "make")
    assert platform.run(bad).run.status is RunStatus.FAILED
    assert "a rule nobody foresaw" in platform.run(bad).run.message
    assert platform.node(bad, "make").is_ended
    good = platform.start_run(CACHED)
    assert platform.node(good, "make").job_id is not None


def test_a_loop_over_the_files_of_a_loop_reads_only_so_much(platform: InMemoryPlatform) -> None:
    """Each file is below its limit; twenty of them are not to be held in memory all the same."""
    run = platform.start_run(WIDE)
    text = b'["' + b"x" * 1_000_000 + b'"]'
    for number in range(20):
        platform.files.write(main_fs(platform), platform.node(run, f"make[{number}]").outputs["made"], text)
        platform.end_step(run, f"make[{number}]")
    assert platform.node(run, "use").status == "failed"
    assert "more than 16777216 bytes" in platform.node(run, "use").message


KEPT = """
name: kept
failure_options: {strategy: continue}
fs_options: {main_fs: {name: main}}
entry_points:
  sub:
    artifacts: {output: {model: "{{train.model}}"}}
    entry_points:
      quick: {command: "be quick"}
      train: {command: "train it", artifacts: {output: [model]}}
  test: {command: "test it", deps: sub, artifacts: {input: {model: "{{sub.model}}"}}}
"""


def test_a_retry_does_again_what_went_away_with_the_run_that_had_done_it(platform: InMemoryPlatform) -> None:
    first = platform.start_run(KEPT)
    platform.end_step(first, "sub.quick")
    platform.end_step(first, "sub.train")
    platform.end_step(first, "test", exit_code=1)

    def retried(run: RunId) -> RunId:
        new = RunId(str(platform.ask(RetryRun(id=run))["runID"]))
        platform.settle()
        return new

    second = retried(first)
    assert platform.node(second, "sub.train").source_run == first, "it is kept while its files are there"
    platform.end_step(second, "test", exit_code=1)
    platform.ask(DeleteRun(id=first, check_cache=False))
    platform.settle()
    third = retried(second)
    assert {node.key: str(node.status) for node in platform.run(third).nodes} == {
        "sub": "running",
        "sub.quick": "succeeded",
        "sub.train": "running",
    }
    platform.end_step(third, "sub.train")
    platform.end_step(third, "test")
    assert platform.run(third).run.status is RunStatus.SUCCEEDED
    assert third in platform.node(third, "test").inputs["model"]
