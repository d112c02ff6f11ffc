"""What every store must keep of stored pipelines, schedules and the numbers ids are made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from paddleflow.domain.errors import Conflict, Duplicate
from paddleflow.domain.ids import PipelineId, ScheduleId, UserName, VersionId
from paddleflow.domain.queries import PipelineFilter, ScheduleFilter
from paddleflow.domain.runs import RUN_ACTIVE, RunStatus
from paddleflow.domain.schedules import Schedule, ScheduleStatus
from paddleflow.ports.store import Store
from tests.contracts import samples
from tests.contracts.store_contract import ALICE, PATIENCE_S, page_through, stored_example, undone

BOBBY = UserName("bobby")
ONE, TWO = PipelineId("ppl-000001"), PipelineId("ppl-000002")


class StoreCatalogContract:
    # Pipelines

    def test_a_pipeline_has_its_name_for_its_owner_alone(self, store: Store) -> None:
        with store.write() as unit:
            first = unit.pipelines.add(samples.pipeline("ppl-1", name="train"))
            other = unit.pipelines.add(samples.pipeline("ppl-2", name="train", owner=BOBBY))
            with pytest.raises(Duplicate) as caught:
                unit.pipelines.add(samples.pipeline("ppl-3", name="train"))
            assert caught.value.details == {"kind": "pipeline", "name": "train"}
        with store.read() as view:
            assert view.pipelines.find_named(ALICE, "train") == first
            assert view.pipelines.find_named(BOBBY, "train") == other
            assert view.pipelines.find_named(ALICE, "Train") is None
            assert view.pipelines.find(PipelineId("ppl-3")) is None
        with pytest.raises(Duplicate), store.write() as unit:
            added = unit.pipelines.add(samples.pipeline("ppl-4", name="test"))
            unit.pipelines.save(replace(added, name="train"))

    def test_pipelines_are_listed_by_owner_and_name(self, store: Store) -> None:
        with store.write() as unit:
            for n in range(6):
                unit.pipelines.add(samples.pipeline(f"ppl-{n}", owner=(ALICE, BOBBY)[n % 2], name=f"p{n // 2}"))
        with store.read() as view:

            def ids(**where: Any) -> list[str]:
                rows = page_through(lambda request: view.pipelines.page(PipelineFilter(**where), request), 2)
                return [row.id.removeprefix("ppl-") for row in rows]

            assert ids() == ["0", "1", "2", "3", "4", "5"]
            assert ids(owners=frozenset({BOBBY})) == ["1", "3", "5"]
            assert ids(names=frozenset({"p0", "p2", "p9"})) == ["0", "1", "4", "5"]
            assert ids(names=frozenset({"p1"}), owners=frozenset({ALICE})) == ["2"]

    def test_versions_of_pipelines(self, store: Store) -> None:
        with store.write() as unit:
            for id in (ONE, TWO):
                unit.pipelines.add(samples.pipeline(id))
            added = [
                unit.pipelines.add_version(samples.pipeline_version(str(n), fs_name=f"fs{n % 2}")) for n in (9, 10, 11)
            ]
            foreign = unit.pipelines.add_version(
                samples.pipeline_version("9", TWO, fs_id="fs-alice-data", yaml_path="a/run.yaml")
            )
            with pytest.raises(Duplicate):
                unit.pipelines.add_version(samples.pipeline_version("10"))
        assert added[0] == samples.pipeline_version("9", fs_name="fs1", seq=1)
        with store.read() as view:
            assert view.pipelines.find_version(ONE, VersionId("10")) == added[1]
            assert view.pipelines.find_version(TWO, VersionId("10")) is None
            assert view.pipelines.find_version(TWO, VersionId("9")) == foreign
            assert view.pipelines.latest_version(ONE) == added[2], "the newest, not the greatest as text"
            assert view.pipelines.latest_version(PipelineId("ppl-x")) is None
            assert view.pipelines.count_versions(ONE) == 3
            assert page_through(lambda r: view.pipelines.page_versions(ONE, frozenset(), r), 2) == added
            some = frozenset({"fs1"})
            assert page_through(lambda r: view.pipelines.page_versions(ONE, some, r), 1) == [added[0], added[2]]
        with store.write() as unit:
            unit.pipelines.delete_version(ONE, VersionId("11"))
            unit.pipelines.delete_version(ONE, VersionId("12"))
            assert unit.pipelines.latest_version(ONE) == added[1]
            assert unit.pipelines.count_versions(ONE) == 2

    def test_a_deleted_pipeline_takes_its_versions_along(self, store: Store) -> None:
        with store.write() as unit:
            for id in (ONE, TWO):
                unit.pipelines.add(samples.pipeline(id))
                unit.pipelines.add_version(samples.pipeline_version("1", id))
        with store.write() as unit:
            unit.pipelines.delete(ONE)
            assert unit.pipelines.count_versions(ONE) == 0
            assert unit.pipelines.find_version(ONE, VersionId("1")) is None
            assert unit.pipelines.count_versions(TWO) == 1

    def test_a_version_of_no_pipeline_is_refused(self, store: Store) -> None:
        with pytest.raises(Conflict), store.write() as unit:
            unit.pipelines.add_version(samples.pipeline_version())

    # Schedules

    @stored_example
    @given(before=samples.schedules, after=samples.schedules)
    def test_any_schedule_comes_back_as_it_was(self, store: Store, before: Schedule, after: Schedule) -> None:
        with undone(store) as unit:
            added = unit.schedules.add(before)
            assert unit.schedules.find(before.id) == added == replace(before, seq=added.seq, version=1)
            saved = unit.schedules.save(replace(after, seq=added.seq, version=1))
            assert unit.schedules.find(before.id) == saved == replace(after, seq=added.seq, version=2)

    def test_a_schedule_has_its_name_for_its_owner_alone(self, store: Store) -> None:
        with store.write() as unit:
            first = unit.schedules.add(samples.schedule("s1", name="nightly"))
            other = unit.schedules.add(samples.schedule("s2", name="nightly", owner=BOBBY))
            with pytest.raises(Duplicate) as caught:
                unit.schedules.add(samples.schedule("s3", name="nightly"))
            assert caught.value.details == {"kind": "schedule", "name": "nightly"}
        with store.read() as view:
            assert view.schedules.find_named(ALICE, "nightly") == first
            assert view.schedules.find_named(BOBBY, "nightly") == other
            assert view.schedules.find_named(ALICE, "daily") is None

    def test_schedules_are_listed(self, store: Store) -> None:
        statuses = [ScheduleStatus.RUNNING, ScheduleStatus.SUCCESS, ScheduleStatus.TERMINATED]
        with store.write() as unit:
            for n in range(6):
                unit.schedules.add(
                    samples.schedule(
                        f"s{n}",
                        name=f"named {n}",
                        owner=(ALICE, BOBBY)[n % 2],
                        pipeline_id=(ONE, TWO)[n // 3],
                        version_id=VersionId(str(n % 3)),
                        status=statuses[n % 3],
                    )
                )
        with store.read() as view:

            def ids(**where: Any) -> list[str]:
                rows = page_through(lambda request: view.schedules.page(ScheduleFilter(**where), request), 2)
                return [row.id for row in rows]

            assert len(ids()) == 6
            assert ids(owners=frozenset({ALICE})) == ["s0", "s2", "s4"]
            assert ids(ids=frozenset({"s1", "s5", "s9"})) == ["s1", "s5"]
            assert ids(names=frozenset({"named 3"})) == ["s3"]
            assert ids(pipelines=frozenset({TWO})) == ["s3", "s4", "s5"]
            assert ids(pipelines=frozenset({TWO}), versions=frozenset({"1"})) == ["s4"]
            assert ids(statuses=frozenset(statuses[1:])) == ["s1", "s2", "s4", "s5"]
            assert [row.id for row in view.schedules.running()] == ["s0", "s3"]

    def test_the_active_runs_of_a_schedule_are_the_oldest_first_and_light(self, store: Store) -> None:
        mine = ScheduleId("s1")
        with store.write() as unit:
            added = [
                unit.runs.add(samples.run(f"run-{9 - n}", status=status, schedule_id=mine))
                for n, status in enumerate(RunStatus)
            ]
            unit.runs.add(samples.run("run-a", status=RunStatus.RUNNING))
            unit.runs.add(samples.run("run-b", status=RunStatus.RUNNING, schedule_id="s2"))
        with store.read() as view:
            assert view.schedules.active_runs(mine) == tuple(
                replace(run, text="", plan="") for run in added if run.status in RUN_ACTIVE
            )
            assert view.schedules.active_runs(ScheduleId("s3")) == ()

    # Numbers

    def test_numbers_are_counted_up_for_each_kind(self, store: Store) -> None:
        with store.write() as unit:
            assert [unit.numbers.next("run") for _ in range(3)] == [1, 2, 3]
            assert unit.numbers.next("ppl") == 1
        with undone(store) as unit:
            unit.numbers.next("cch")
        with store.write() as unit:
            assert unit.numbers.next("run") == 4
            assert unit.numbers.next("cch") == 1

    def test_a_number_is_given_to_one_writer_only(self, store: Store, second: Store) -> None:
        def take(to: Store) -> list[int]:
            taken = []
            for _ in range(20):
                with to.write() as unit:
                    taken.append(unit.numbers.next("run"))
            return taken

        with ThreadPoolExecutor(4) as threads:
            waiting = [threads.submit(take, to) for to in (store, second, store, second)]
            numbers = [number for each in waiting for number in each.result(PATIENCE_S)]
        assert sorted(numbers) == list(range(1, 81))
