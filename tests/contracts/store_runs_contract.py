"""What every store must keep of runs: their nodes, what may be reused, what was read and made, what is left behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Conflict, Duplicate, Invalid, Stale
from paddleflow.domain.ids import CacheId, FilesystemId, JobId, RunId, UserName
from paddleflow.domain.queries import ArtifactFilter, CacheFilter, PageRequest, RunFilter
from paddleflow.domain.runs import (
    RUN_ACTIVE,
    ArtifactUse,
    CacheEntry,
    NodeKind,
    NodeStatus,
    Run,
    RunNode,
    RunStatus,
)
from paddleflow.ports.store import Store
from tests.contracts import samples
from tests.contracts.store_contract import ALICE, ALL, page_through, stored_example, undone

ONE, TWO, THREE = RunId("run-000001"), RunId("run-000002"), RunId("run-000003")
DATA = FilesystemId("fs-alice-data")
BOBBY = UserName("bobby")


def add_runs(store: Store, *ids: RunId, **changes: Any) -> None:
    with store.write() as unit:
        for id in ids:
            unit.runs.add(samples.run(id, **changes))


class StoreRunsContract:
    # Runs

    @stored_example
    @given(run=samples.runs)
    def test_any_run_comes_back_as_it_was(self, store: Store, run: Run) -> None:
        with undone(store) as unit:
            added = unit.runs.add(run)
            assert unit.runs.find(run.id) == added == replace(run, seq=added.seq, version=1)
            assert unit.runs.in_status(frozenset({run.status})) == (added,)

    @stored_example
    @given(before=samples.runs, after=samples.runs)
    def test_any_change_of_a_run_is_kept_but_for_its_texts(self, store: Store, before: Run, after: Run) -> None:
        with undone(store) as unit:
            added = unit.runs.add(before)
            saved = unit.runs.save(replace(after, seq=added.seq, version=1))
            assert saved == replace(after, seq=added.seq, version=2)
            assert unit.runs.find(before.id) == replace(saved, text=before.text, plan=before.plan)

    def test_a_run_from_a_list_may_be_saved(self, store: Store) -> None:
        add_runs(store, ONE)
        with store.write() as unit:
            listed = unit.runs.page(RunFilter(ids=frozenset({ONE})), ALL).rows[0]
            assert (listed.text, listed.plan) == ("", "")
            unit.runs.save(replace(listed, status=RunStatus.RUNNING))
            with pytest.raises(Stale):
                unit.runs.save(listed)
        with store.read() as view:
            assert view.runs.find(ONE) == samples.run(ONE, status=RunStatus.RUNNING, seq=1, version=2)

    @stored_example
    @given(
        rows=st.lists(
            st.fixed_dictionaries(
                {
                    "owner": st.sampled_from(["alice", "bobby"]),
                    "fs_name": st.sampled_from(["", "data"]),
                    "name": st.sampled_from(["train", "test", "Train"]),
                    "status": st.sampled_from([RunStatus.RUNNING, RunStatus.FAILED, RunStatus.SUCCEEDED]),
                    "schedule_id": st.sampled_from([None, "schedule-1", "schedule-2"]),
                }
            ),
            max_size=12,
        ),
        where=st.builds(
            RunFilter,
            owners=st.frozensets(st.sampled_from([UserName("alice"), UserName("bobby"), UserName("carol")])),
            fs_names=st.frozensets(st.sampled_from(["", "data"])),
            ids=st.frozensets(st.integers(0, 12).map(lambda n: RunId(f"run-{n}")), max_size=5),
            names=st.frozensets(st.sampled_from(["train", "test"])),
            statuses=st.frozensets(st.sampled_from([RunStatus.RUNNING, RunStatus.FAILED])),
            schedule=st.sampled_from([None, "schedule-1"]),
        ),
        limit=st.integers(1, 5),
    )
    def test_a_filtered_list_of_runs_is_what_a_plain_filter_gives(
        self, store: Store, rows: list[dict[str, Any]], where: RunFilter, limit: int
    ) -> None:
        with undone(store) as unit:
            stored = [unit.runs.add(samples.run(f"run-{n}", **row)) for n, row in enumerate(rows)]
            expected = [replace(run, text="", plan="") for run in stored if run_passes(run, where)]
            assert page_through(lambda request: unit.runs.page(where, request), limit) == expected
            newest = page_through(lambda request: unit.runs.page(where, request), limit, newest_first=True)
            assert newest == expected[::-1]

    def test_runs_by_status_are_whole_and_the_oldest_first(self, store: Store) -> None:
        with store.write() as unit:
            added = [
                unit.runs.add(samples.run(f"run-{n}", status=status))
                for n, status in enumerate([RunStatus.SUCCEEDED, RunStatus.RUNNING, RunStatus.INITIATING])
            ]
        with store.read() as view:
            assert view.runs.in_status(RUN_ACTIVE) == tuple(added[1:])
            assert view.runs.in_status(frozenset()) == ()

    def test_a_deleted_run_takes_what_belongs_to_it_along_and_nothing_else(self, store: Store) -> None:
        add_runs(store, ONE, TWO)
        kept = samples.run_node("train", TWO)
        with store.write() as unit:
            unit.runs.put_nodes([samples.run_node("train", ONE), kept])
            unit.artifacts.add([samples.artifact(), samples.artifact(run_id=TWO)])
            unit.cache.add(samples.cache_entry("cch-1"))
            unit.cache.add(samples.cache_entry("cch-2", run_id=TWO))
        with store.write() as unit:
            unit.runs.delete(ONE)
            unit.runs.delete(RunId("unknown"))
        with store.write() as unit:
            assert unit.runs.find(ONE) is None
            assert unit.runs.nodes(ONE) == ()
            assert unit.runs.nodes(TWO) == (kept,)
            assert [event.run_id for event in unit.artifacts.page(ArtifactFilter(), ALL).rows] == [TWO]
            assert [entry.id for entry in unit.cache.page(CacheFilter(), ALL).rows] == ["cch-2"]
            again = unit.runs.add(samples.run(ONE))
            assert again.seq > 2
            assert unit.runs.find(ONE) == again
            assert unit.runs.nodes(ONE) == ()

    # Nodes

    @stored_example
    @given(before=samples.run_nodes, after=samples.run_nodes)
    def test_any_node_comes_back_as_it_was_put_last(self, store: Store, before: RunNode, after: RunNode) -> None:
        with undone(store) as unit:
            unit.runs.add(samples.run(ONE))
            unit.runs.put_nodes([before])
            assert unit.runs.nodes(ONE) == (before,)
            unit.runs.put_nodes([replace(after, key=before.key)])
            assert unit.runs.nodes(ONE) == (replace(after, key=before.key),)

    def test_nodes_stay_in_the_order_in_which_they_were_first_put(self, store: Store) -> None:
        add_runs(store, ONE, TWO)
        keys = ["c", "a", "b[10]", "b[9]"]
        with store.write() as unit:
            unit.runs.put_nodes([samples.run_node(key) for key in keys[:2]])
            unit.runs.put_nodes([samples.run_node("a", TWO)])
            unit.runs.put_nodes([samples.run_node(key) for key in keys[2:]])
            unit.runs.put_nodes([])
        with store.write() as unit:
            changed = [samples.run_node(key, status=NodeStatus.RUNNING) for key in ("b[9]", "c")]
            unit.runs.put_nodes([*changed, samples.run_node("z"), replace(changed[1], status=NodeStatus.FAILED)])
        with store.read() as view:
            assert [(node.key, node.status) for node in view.runs.nodes(ONE)] == [
                ("c", NodeStatus.FAILED),
                ("a", NodeStatus.PENDING),
                ("b[10]", NodeStatus.PENDING),
                ("b[9]", NodeStatus.RUNNING),
                ("z", NodeStatus.PENDING),
            ]
            assert view.runs.nodes(TWO) == (samples.run_node("a", TWO),)
            assert view.runs.nodes(THREE) == ()

    def test_ten_thousand_nodes_are_put_and_replaced_at_once(self, store: Store) -> None:
        add_runs(store, ONE)
        nodes = [
            samples.run_node(f"train[{n}]", node="train", seq=n, item=n, in_loop=True, parameters={"lr": n / 7})
            for n in range(10_000)
        ]
        with store.write() as unit:
            unit.runs.put_nodes(nodes)
        with store.write() as unit:
            unit.runs.put_nodes([replace(node, status=NodeStatus.SUCCEEDED) for node in reversed(nodes)])
        with store.read() as view:
            found = view.runs.nodes(ONE)
        assert [node.seq for node in found] == list(range(10_000))
        assert found[7_000] == replace(nodes[7_000], status=NodeStatus.SUCCEEDED)

    def test_nodes_put_by_a_failed_transaction_and_seen_by_a_reader(self, store: Store, second: Store) -> None:
        add_runs(store, ONE)
        with store.write() as unit:
            unit.runs.put_nodes([samples.run_node("a")])
        with store.read() as view:
            assert view.runs.nodes(ONE) == (samples.run_node("a"),)
            with undone(second) as unit:
                unit.runs.put_nodes([samples.run_node("b")])
            with second.write() as unit:
                unit.runs.put_nodes([samples.run_node("a", message="new"), samples.run_node("c")])
            assert view.runs.nodes(ONE) == (samples.run_node("a"),), "a read view moved"
        with store.read() as view:
            assert [node.key for node in view.runs.nodes(ONE)] == ["a", "c"]

    def test_a_node_of_no_run_is_refused(self, store: Store) -> None:
        with pytest.raises(Conflict), store.write() as unit:
            unit.runs.put_nodes([samples.run_node("a", "run-000009")])
        with store.read() as view:
            assert view.runs.nodes(RunId("run-000009")) == ()

    def test_times_of_nodes_come_back_in_utc(self, store: Store) -> None:
        add_runs(store, ONE)
        elsewhere = samples.NOON.astimezone(timezone(timedelta(hours=8)))
        with store.write() as unit:
            unit.runs.put_nodes([samples.run_node("a", started_at=elsewhere)])
        with store.read() as view:
            started = view.runs.nodes(ONE)[0].started_at
        assert started == samples.NOON
        assert started is not None
        assert started.utcoffset() == timedelta(0)
        with pytest.raises(Invalid), store.write() as unit:
            unit.runs.put_nodes([samples.run_node("b", started_at=samples.NOON.replace(tzinfo=None))])

    def test_the_node_of_a_job_is_the_one_that_started_it(self, store: Store) -> None:
        add_runs(store, ONE, TWO, THREE)
        job = JobId("job-1")
        mine = samples.run_node("train", TWO, job_id=job, status=NodeStatus.SUCCEEDED)
        with store.write() as unit:
            unit.runs.put_nodes(
                [
                    samples.run_node("reused", ONE, job_id=job, cache_run_id=TWO, source_run=TWO),
                    samples.run_node("other", TWO, job_id=JobId("job-2")),
                    samples.run_node("waiting", TWO),
                    mine,
                    samples.run_node("kept", THREE, job_id=job, source_run=TWO),
                ]
            )
        with store.read() as view:
            assert view.runs.node_of_job(job) == mine
            assert view.runs.node_of_job(JobId("job-3")) is None

    def test_the_users_of_a_run_are_those_that_rely_on_its_results(self, store: Store) -> None:
        add_runs(store, THREE, ONE, TWO, RunId("run-000004"))
        with store.write() as unit:
            unit.runs.put_nodes(
                [
                    samples.run_node("a", TWO, source_run=ONE),
                    samples.run_node("b", TWO, source_run=ONE, cache_run_id=ONE),
                    samples.run_node("a", THREE, cache_run_id=ONE),
                    samples.run_node("a", ONE, source_run=ONE),
                    samples.run_node("a", RunId("run-000004"), source_run=TWO),
                ]
            )
        with store.read() as view:
            assert view.runs.users_of(ONE) == (THREE, TWO), "not in the order of their rows"
            assert view.runs.users_of(TWO) == (RunId("run-000004"),)
            assert view.runs.users_of(THREE) == ()
        with store.write() as unit:
            unit.runs.delete(THREE)
            assert unit.runs.users_of(ONE) == (TWO,)

    # The cache

    @stored_example
    @given(entry=samples.cache_entries)
    def test_any_cache_entry_comes_back_as_it_was(self, store: Store, entry: CacheEntry) -> None:
        with undone(store) as unit:
            unit.runs.add(samples.run(ONE))
            added = unit.cache.add(entry)
            assert unit.cache.find(entry.id) == added == replace(entry, seq=added.seq)
            assert unit.cache.matching(entry.owner, entry.fs_id, entry.fingerprint.first) == (added,)
            assert unit.cache.latest_of_step(entry.owner, entry.fs_id, entry.node, 5) == (added,)

    def test_cache_entries_are_found_in_their_scope_the_newest_first(self, store: Store) -> None:
        add_runs(store, ONE)
        scopes = [(ALICE, DATA), (ALICE, None), (BOBBY, DATA), (ALICE, DATA), (ALICE, FilesystemId("fs-x"))]
        with store.write() as unit:
            for n, (owner, fs_id) in enumerate(scopes):
                unit.cache.add(samples.cache_entry(f"cch-{n}", owner=owner, fs_id=fs_id))
            other = samples.fingerprint(first="another")
            unit.cache.add(samples.cache_entry("cch-other", fingerprint=other))
            unit.cache.add(samples.cache_entry("cch-step", node="sub.train"))
            with pytest.raises(Duplicate):
                unit.cache.add(samples.cache_entry("cch-0"))
        with store.read() as view:

            def ids(owner: UserName, fs_id: FilesystemId | None, first: str = "first") -> list[str]:
                return [entry.id for entry in view.cache.matching(owner, fs_id, first)]

            assert ids(ALICE, DATA) == ["cch-step", "cch-3", "cch-0"]
            assert ids(ALICE, None) == ["cch-1"]
            assert ids(BOBBY, DATA) == ["cch-2"]
            assert ids(BOBBY, None) == []
            assert ids(ALICE, DATA, "another") == ["cch-other"]
            steps = view.cache.latest_of_step(ALICE, DATA, "train", 2)
            assert [entry.id for entry in steps] == ["cch-other", "cch-3"]
            assert [entry.id for entry in view.cache.latest_of_step(ALICE, None, "train", 9)] == ["cch-1"]
        with store.write() as unit:
            unit.cache.delete(CacheId("cch-3"))
            unit.cache.delete(CacheId("unknown"))
            assert unit.cache.find(CacheId("cch-3")) is None
            assert [entry.id for entry in unit.cache.matching(ALICE, DATA, "first")] == ["cch-step", "cch-0"]

    def test_at_most_a_hundred_cache_entries_match(self, store: Store) -> None:
        add_runs(store, ONE)
        with store.write() as unit:
            for n in range(103):
                unit.cache.add(samples.cache_entry(f"cch-{n}"))
        with store.read() as view:
            assert [entry.id for entry in view.cache.matching(ALICE, DATA, "first")] == [
                f"cch-{n}" for n in range(102, 2, -1)
            ]

    def test_cache_entries_are_listed(self, store: Store) -> None:
        add_runs(store, ONE, TWO)
        with store.write() as unit:
            for n in range(6):
                owner, run_id = (ALICE, BOBBY)[n % 2], (ONE, TWO)[n // 3]
                unit.cache.add(samples.cache_entry(f"cch-{n}", owner=owner, run_id=run_id, fs_name=f"fs{n % 3}"))
        with store.read() as view:

            def ids(**where: Any) -> list[str]:
                rows = page_through(lambda request: view.cache.page(CacheFilter(**where), request), 2)
                return [entry.id.removeprefix("cch-") for entry in rows]

            assert ids() == ["0", "1", "2", "3", "4", "5"]
            assert ids(owners=frozenset({ALICE})) == ["0", "2", "4"]
            assert ids(owners=frozenset({ALICE, BOBBY}), run_ids=frozenset({TWO})) == ["3", "4", "5"]
            assert ids(fs_names=frozenset({"fs0", "fs2", "none"})) == ["0", "2", "3", "5"]

    def test_a_cache_entry_of_no_run_is_refused(self, store: Store) -> None:
        with pytest.raises(Conflict), store.write() as unit:
            unit.cache.add(samples.cache_entry(run_id=RunId("run-000009")))

    # Artifacts

    def test_artifacts_are_recorded_once_and_listed(self, store: Store) -> None:
        add_runs(store, ONE, TWO)
        made = samples.artifact("model")
        read = samples.artifact("data", use=ArtifactUse.INPUT, path="data/all.csv", owner=BOBBY)
        with store.write() as unit:
            unit.artifacts.add([made, read])
            unit.artifacts.add([samples.artifact("model", run_id=TWO, job_id=JobId("job-2"), fs_name="other")])
            unit.artifacts.add([])
        with store.write() as unit:
            unit.artifacts.add([replace(made, path="moved", updated_at=samples.at(5), meta="new")])
        with store.read() as view:
            rows = view.artifacts.page(ArtifactFilter(), ALL).rows
            assert rows[0] == replace(made, seq=1, path="moved", updated_at=samples.at(5), meta="new")
            assert rows[1] == replace(read, seq=2)
            assert len(rows) == 3

            def found(**where: Any) -> list[tuple[str, str]]:
                listed = page_through(lambda request: view.artifacts.page(ArtifactFilter(**where), request), 1)
                return [(event.run_id, event.name) for event in listed]

            assert found(owners=frozenset({BOBBY})) == [(ONE, "data")]
            assert found(fs_names=frozenset({"other"})) == [(TWO, "model")]
            assert found(run_ids=frozenset({ONE})) == [(ONE, "model"), (ONE, "data")]
            assert found(uses=frozenset({ArtifactUse.OUTPUT})) == [(ONE, "model"), (TWO, "model")]
            assert found(paths=frozenset({"moved", "data/all.csv", "x"})) == [(ONE, "model"), (ONE, "data")]
            assert found(paths=frozenset({"moved"}), owners=frozenset({BOBBY})) == []

    def test_records_of_an_artifact_are_forgotten_and_counted(self, store: Store) -> None:
        add_runs(store, ONE, TWO)
        with store.write() as unit:
            shared = {"path": "a/b"}
            unit.artifacts.add(
                [
                    samples.artifact("one", **shared),
                    samples.artifact("two", use=ArtifactUse.INPUT, **shared),
                    samples.artifact("three", run_id=TWO, **shared),
                    samples.artifact("four", owner=BOBBY, **shared),
                ]
            )
        with store.write() as unit:
            assert unit.artifacts.delete(ALICE, "data", ONE, "a/b") == 2
            assert unit.artifacts.delete(ALICE, "data", ONE, "a/b") == 0
            assert unit.artifacts.delete(ALICE, "other", TWO, "a/b") == 0
            left = unit.artifacts.page(ArtifactFilter(), ALL).rows
            assert [event.name for event in left] == ["three", "four"]

    def test_an_artifact_may_have_a_long_path_and_must_have_a_run(self, store: Store) -> None:
        add_runs(store, ONE)
        long = "/".join(["d" * 200] * 30)
        with store.write() as unit:
            unit.artifacts.add([samples.artifact(path=long)])
        with store.read() as view:
            assert len(view.artifacts.page(ArtifactFilter(paths=frozenset({long})), ALL).rows) == 1
        with pytest.raises(Conflict), store.write() as unit:
            unit.artifacts.add([samples.artifact(run_id=RunId("run-000009"))])

    # What deleted runs leave

    def test_run_remains_are_kept_until_they_are_cleared(self, store: Store) -> None:
        with store.write() as unit:
            unit.run_remains.add(TWO, DATA, ".pipeline/run-000002")
            unit.run_remains.add(ONE, DATA, ".pipeline/run-000001")
            with pytest.raises(Duplicate):
                unit.run_remains.add(ONE, DATA, "elsewhere")
        with store.write() as unit:
            assert unit.run_remains.all() == (
                (ONE, DATA, ".pipeline/run-000001"),
                (TWO, DATA, ".pipeline/run-000002"),
            )
            unit.run_remains.delete(ONE)
            unit.run_remains.delete(THREE)
        with store.read() as view:
            assert view.run_remains.all() == ((TWO, DATA, ".pipeline/run-000002"),)

    def test_a_read_view_takes_no_rows_of_runs(self, store: Store) -> None:
        add_runs(store, ONE)
        with store.read() as view:
            for refused in (
                lambda: view.runs.put_nodes([samples.run_node("a")]),
                lambda: view.artifacts.add([samples.artifact()]),
                lambda: view.artifacts.delete(ALICE, "data", ONE, "x"),
                lambda: view.cache.add(samples.cache_entry()),
                lambda: view.cache.delete(CacheId("cch-1")),
                lambda: view.run_remains.add(ONE, DATA, "x"),
                lambda: view.numbers.next("run"),
            ):
                with pytest.raises(Conflict):
                    refused()

    def test_a_list_of_runs_goes_on_after_a_deleted_row(self, store: Store) -> None:
        add_runs(store, ONE, TWO, THREE)
        with store.write() as unit:
            unit.runs.delete(TWO)
        with store.read() as view:
            first = view.runs.page(RunFilter(), PageRequest(limit=1))
            assert [run.id for run in first.rows] == [ONE]
            assert first.next_after == 1
            rest = view.runs.page(RunFilter(), PageRequest(limit=1, after=1))
            assert [run.id for run in rest.rows] == [THREE]
            assert rest.next_after is None

    def test_a_dag_is_a_node_like_any_other(self, store: Store) -> None:
        add_runs(store, ONE)
        dag = samples.run_node("sub[2]", node="sub", kind=NodeKind.DAG, id="dag-1", seq=2, in_loop=True, item=["a", 1])
        with store.write() as unit:
            unit.runs.put_nodes([dag, samples.run_node("sub[2].train", node="sub.train", parent="sub[2]")])
        with store.read() as view:
            assert view.runs.nodes(ONE)[0] == dag
            assert view.runs.nodes(ONE)[1].parent == "sub[2]"


def run_passes(run: Run, where: RunFilter) -> bool:
    if where.owners and run.owner not in where.owners:
        return False
    if where.fs_names and run.fs_name not in where.fs_names:
        return False
    if where.ids and run.id not in where.ids:
        return False
    if where.names and run.name not in where.names:
        return False
    if where.statuses and run.status not in where.statuses:
        return False
    return where.schedule is None or run.schedule_id == where.schedule
