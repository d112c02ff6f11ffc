"""What every store must do, whatever it is made of. Subclasses say how one is opened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from paddleflow.domain.clusters import ClusterStatus
from paddleflow.domain.errors import Conflict, Duplicate, Invalid, Stale, Unavailable
from paddleflow.domain.ids import ClusterName, JobId, UserName
from paddleflow.domain.jobs import JobStatus, RunPolicy
from paddleflow.domain.queries import PageRequest
from paddleflow.domain.runs import RunStatus, Stop
from paddleflow.domain.schedules import ScheduleStatus
from paddleflow.ports.store import Receipt, Store, UnitOfWork
from tests.contracts import samples

ALL = PageRequest(limit=1000)
ALICE = UserName("alice")
PATIENCE_S = 60.0

# Each example is rolled back, so sharing one store between them, and one test between three stores, mixes nothing up.
stored_example = settings(
    max_examples=60,
    suppress_health_check=[
        HealthCheck.differing_executors,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)


class Undo(Exception):
    """Raised to leave a write transaction without a trace."""


@contextmanager
def undone(store: Store) -> Iterator[UnitOfWork]:
    """A write transaction of which nothing remains."""
    try:
        with store.write() as unit:
            yield unit
            raise Undo
    except Undo:
        pass


def page_through(page: Callable[[PageRequest], Any], limit: int, *, newest_first: bool = False) -> list[Any]:
    """All rows of a list, page by page; a page that promises more must be followed by one that has some."""
    rows: list[Any] = []
    after = 0
    while True:
        found = page(PageRequest(limit=limit, after=after, newest_first=newest_first))
        assert len(found.rows) <= limit
        assert found.rows or after == 0, "a page said that more follow, and nothing did"
        rows += found.rows
        if found.next_after is None:
            return rows
        assert found.next_after == found.rows[-1].seq
        after = found.next_after


AGGREGATES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "users": (samples.user, {"password_hash": "other"}),
    "flavours": (samples.flavour, {"cpu": "4"}),
    "clusters": (samples.cluster, {"status": ClusterStatus.OFFLINE}),
    "queues": (samples.queue, {"policies": ()}),
    "filesystems": (samples.filesystem, {"properties": {}}),
    "jobs": (samples.job, {"status": JobStatus.RUNNING}),
    "runs": (samples.run, {"status": RunStatus.RUNNING, "stop": Stop.GENTLE}),
    "pipelines": (samples.pipeline, {"versions_made": 9}),
    "schedules": (samples.schedule, {"status": ScheduleStatus.TERMINATED, "next_at": None}),
}


def key_of(row: Any) -> Any:
    return row.id if hasattr(row, "owner") and not hasattr(row, "cpu") else row.name


class StoreContract:
    wakes_when_it_begins_to_listen = False
    """A store that hears of other processes wakes its listeners once it does: they may have missed something."""

    @pytest.fixture
    def store(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def second(self, store: Store) -> Any:
        """Another way in to the same rows: another process's store, where there can be one."""
        return store

    # Aggregates

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_an_aggregate_is_added_saved_and_deleted(self, store: Store, name: str) -> None:
        make, changes = AGGREGATES[name]
        with store.write() as unit:
            added = getattr(unit, name).add(make())
        assert (added.seq, added.version) == (1, 1)
        assert added == replace(make(), seq=1, version=1)
        with store.read() as view:
            assert getattr(view, name).find(key_of(added)) == added
        with store.write() as unit:
            saved = getattr(unit, name).save(replace(added, updated_at=samples.at(5), **changes))
        assert saved == replace(added, updated_at=samples.at(5), version=2, **changes)
        with store.read() as view:
            assert getattr(view, name).find(key_of(added)) == saved
        with store.write() as unit:
            getattr(unit, name).delete(key_of(added))
        with store.read() as view:
            assert getattr(view, name).find(key_of(added)) is None

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_a_taken_name_is_a_duplicate_and_the_transaction_goes_on(self, store: Store, name: str) -> None:
        make, _ = AGGREGATES[name]
        with store.write() as unit:
            first = getattr(unit, name).add(make())
            with pytest.raises(Duplicate) as caught:
                getattr(unit, name).add(make())
            unit.events.append(samples.event())
        assert caught.value.details["kind"] == name.removesuffix("s")
        assert caught.value.details["name"] in (key_of(first), first.name)
        with store.read() as view:
            assert getattr(view, name).find(key_of(first)) == first
            assert view.events.last_seq() == 1

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_saving_what_changed_meanwhile_is_stale(self, store: Store, name: str) -> None:
        make, changes = AGGREGATES[name]
        with store.write() as unit:
            old = getattr(unit, name).add(make())
            new = getattr(unit, name).save(replace(old, **changes))
        with pytest.raises(Stale), store.write() as unit:
            getattr(unit, name).save(old)
        with store.read() as view:
            assert getattr(view, name).find(key_of(old)) == new

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_saving_what_was_deleted_is_stale(self, store: Store, name: str) -> None:
        make, _ = AGGREGATES[name]
        with store.write() as unit:
            gone = getattr(unit, name).add(make())
            getattr(unit, name).delete(key_of(gone))
        with pytest.raises(Stale), store.write() as unit:
            getattr(unit, name).save(gone)

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_a_row_number_is_never_given_out_twice(self, store: Store, name: str) -> None:
        make, _ = AGGREGATES[name]
        with store.write() as unit:
            first = getattr(unit, name).add(make())
            getattr(unit, name).delete(key_of(first))
        with store.write() as unit:
            second = getattr(unit, name).add(make())
        assert second.seq > first.seq

    @pytest.mark.parametrize("name", AGGREGATES)
    def test_a_read_view_refuses_to_be_written_to(self, store: Store, name: str) -> None:
        make, _ = AGGREGATES[name]
        with store.read() as view:
            with pytest.raises(Conflict):
                getattr(view, name).add(make())
            with pytest.raises(Conflict):
                getattr(view, name).delete(key_of(make()))
            with pytest.raises(Conflict):
                view.events.append(samples.event())

    def test_a_transaction_that_fails_leaves_nothing(self, store: Store) -> None:
        with undone(store) as unit:
            for name, (make, _) in AGGREGATES.items():
                getattr(unit, name).add(make())
            unit.jobs.put_tasks([samples.task("job-1-worker-0")])
            unit.grants.add(samples.grant())
            unit.clusters.replace_nodes(ClusterName("default-cluster"), [samples.node("n1")])
            unit.events.append(samples.event())
            unit.leases.acquire("scheduler", "one", samples.NOON, 60)
            unit.receipts.add(Receipt(owner=ALICE, key="k", fingerprint="f", answer={}, at=samples.NOON))
        with store.read() as view:
            for name, (make, _) in AGGREGATES.items():
                assert getattr(view, name).find(key_of(make())) is None
            assert view.jobs.tasks(JobId("job-1")) == ()
            assert view.grants.of_user(ALICE) == ()
            assert view.clusters.nodes() == ()
            assert view.events.last_seq() == 0
            assert view.receipts.find(ALICE, "k") is None
        with store.write() as unit:
            assert unit.leases.acquire("scheduler", "two", samples.NOON, 60)
            assert unit.events.append(samples.event()).seq == 1, "a failed transaction left a hole in the log"

    def test_times_come_back_in_utc_to_the_microsecond(self, store: Store) -> None:
        elsewhere = samples.NOON.astimezone(timezone(timedelta(hours=8)))
        with store.write() as unit:
            unit.users.add(samples.user(created_at=elsewhere))
        with store.read() as view:
            found = view.users.find(ALICE)
        assert found is not None
        assert found.created_at == samples.NOON
        assert found.created_at.microsecond == 123456
        assert found.created_at.utcoffset() == timedelta(0)
        with pytest.raises(Invalid), store.write() as unit:
            unit.users.add(samples.user("bobby", created_at=samples.NOON.replace(tzinfo=None)))

    # Events

    def test_events_are_numbered_and_read_in_order(self, store: Store) -> None:
        with store.write() as unit:
            assert unit.events.last_seq() == 0
            added = [unit.events.append(samples.event(f"job-{n % 2}", data={"n": n})) for n in range(6)]
            rootly = unit.events.append(samples.event("user-1", owner=None))
            assert unit.events.last_seq() == 7, "a transaction must see its own events"
        assert [event.seq for event in added] == [1, 2, 3, 4, 5, 6]
        with store.read() as view:
            assert view.events.after(0, 100) == (*added, rootly)
            assert view.events.after(2, 3) == tuple(added[2:5])
            assert view.events.after(7, 10) == ()
            assert view.events.of_subject("job-1", 10) == (added[1], added[3], added[5])
            assert view.events.of_subject("job-1", 2) == (added[3], added[5])
            assert view.events.of_subject("nobody", 2) == ()

    def test_a_follower_misses_no_event_of_concurrent_writers(self, store: Store, second: Store) -> None:
        writers, each = 6, 25
        everything = writers * each
        finished = threading.Event()

        def write(number: int) -> None:
            to = store if number % 2 else second
            for n in range(each):
                with to.write() as unit:
                    unit.events.append(samples.event(f"writer-{number}", data={"n": n}))
                if n % 5 == 0:
                    with undone(to) as unit:
                        unit.events.append(samples.event("never"))

        def follow(reader: Store) -> list[Any]:
            seen: list[Any] = []
            while True:
                last_round = finished.is_set()
                with reader.read() as view:
                    new = view.events.after(seen[-1].seq if seen else 0, 7)
                seen += new
                if last_round and not new:
                    return seen

        with ThreadPoolExecutor(writers + 2) as threads:
            followers = [threads.submit(follow, each_store) for each_store in (store, second)]
            try:
                for done in [threads.submit(write, number) for number in range(writers)]:
                    done.result(PATIENCE_S * 2)
            finally:
                finished.set()
            for follower in followers:
                seen = follower.result(PATIENCE_S)
                assert [event.seq for event in seen] == list(range(1, everything + 1))
                for number in range(writers):
                    own = [event.data["n"] for event in seen if event.subject == f"writer-{number}"]
                    assert own == list(range(each))

    # Transactions

    def test_a_writer_sees_its_own_changes(self, store: Store) -> None:
        with store.write() as unit:
            unit.users.add(samples.user())
            assert unit.users.find(ALICE) is not None
            with store.read() as view:
                assert view.users.find(ALICE) is None, "an uncommitted row was readable"

    def test_a_read_view_does_not_move_while_others_commit(self, store: Store, second: Store) -> None:
        with store.write() as unit:
            job = unit.jobs.add(samples.job())
        with store.read() as view:
            assert view.events.last_seq() == 0
            with second.write() as unit:
                unit.jobs.save(replace(job, status=JobStatus.RUNNING))
                unit.jobs.put_tasks([samples.task("job-1-worker-0")])
                unit.events.append(samples.event())
            assert view.jobs.find(job.id) == job
            assert view.jobs.tasks(job.id) == ()
            assert view.events.last_seq() == 0
        with store.read() as view:
            assert view.events.last_seq() == 1

    def test_writers_that_read_first_do_not_overwrite_each_other(self, store: Store, second: Store) -> None:
        with store.write() as unit:
            unit.users.add(samples.user())

        def count_up(to: Store) -> None:
            for _ in range(20):
                with to.write() as unit:
                    found = unit.users.find(ALICE)
                    assert found is not None
                    unit.users.save(replace(found, token_epoch=found.token_epoch + 1))

        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(count_up, to) for to in (store, second, store, second)]:
                done.result(PATIENCE_S)
        with store.read() as view:
            found = view.users.find(ALICE)
        assert found is not None
        assert (found.token_epoch, found.version) == (80, 81)

    def test_the_caller_s_own_error_passes_unchanged(self, store: Store) -> None:
        with pytest.raises(UnicodeEncodeError), store.write():
            "\ud800".encode()
        with pytest.raises(OverflowError), store.read():
            raise OverflowError

    # Listeners

    def test_listeners_hear_of_events_after_the_commit(self, store: Store) -> None:
        heard: list[int] = []
        told: list[object] = []
        listening = threading.Event()

        def broken(kinds: object) -> None:
            raise RuntimeError("a listener that fails")

        def listener(kinds: object) -> None:
            told.append(kinds)
            with store.read() as view:
                heard.append(view.events.last_seq())

        store.on_commit(lambda kinds: listening.set())
        assert not self.wakes_when_it_begins_to_listen or listening.wait(PATIENCE_S)
        store.on_commit(broken)
        store.on_commit(listener)
        with store.write() as unit:
            unit.events.append(samples.event())
            unit.events.append(samples.event())
            assert heard == [], "a listener was called before the commit"
        assert heard == [2]
        assert told == [frozenset({samples.event().kind})]
        with store.write() as unit:
            unit.users.add(samples.user())
        with undone(store) as unit:
            unit.events.append(samples.event())
        assert heard == [2], "a listener was called without an event"
        with store.write() as unit:
            unit.events.append(samples.event())
        assert heard == [2, 3]

    # Receipts and leases

    def test_ended_jobs_are_found_for_those_who_watch_the_clock(self, store: Store) -> None:
        spec = samples.job().spec
        mortal = replace(spec, policy=RunPolicy(ttl_s=5.0))
        rows = [
            samples.job(
                "job-1", spec=mortal, status=JobStatus.SUCCEEDED, finished_at=samples.at(1), updated_at=samples.at(1)
            ),
            samples.job("job-2", spec=mortal, status=JobStatus.RUNNING),
            samples.job("job-3", status=JobStatus.FAILED, finished_at=samples.at(3), updated_at=samples.at(3)),
            samples.job(
                "job-4", spec=mortal, status=JobStatus.TERMINATED, finished_at=samples.at(2), updated_at=samples.at(2)
            ),
        ]
        with store.write() as uow:
            for row in rows:
                uow.jobs.add(row)
        with store.read() as view:
            assert [job.id for job in view.jobs.ended_with_ttl()] == ["job-1", "job-4"]
            assert [job.id for job in view.jobs.ended_last(10)] == ["job-3", "job-4", "job-1"]
            assert [job.id for job in view.jobs.ended_last(1)] == ["job-3"]

    def test_receipts(self, store: Store) -> None:
        receipt = Receipt(
            owner=ALICE, key="k1", fingerprint="f", answer={"id": "job-1", "n": [1, None]}, at=samples.NOON
        )
        with store.write() as unit:
            unit.receipts.add(receipt)
            unit.receipts.add(replace(receipt, owner=UserName("bobby"), at=samples.at(10)))
            with pytest.raises(Duplicate):
                unit.receipts.add(replace(receipt, fingerprint="g"))
        with store.write() as unit:
            assert unit.receipts.find(ALICE, "k1") == receipt
            assert unit.receipts.find(ALICE, "k2") is None
            assert unit.receipts.delete_before(samples.at(10)) == 1
            assert unit.receipts.find(ALICE, "k1") is None
            assert unit.receipts.find(UserName("bobby"), "k1") is not None

    def test_a_lease_has_one_holder_at_a_time(self, store: Store, second: Store) -> None:
        def acquire(holder: str, seconds: float, to: Store, ttl_s: float = 10) -> bool:
            with to.write() as unit:
                return unit.leases.acquire("scheduler", holder, samples.at(seconds), ttl_s)

        assert acquire("one", 0, store)
        assert not acquire("two", 9.9, second)
        assert acquire("one", 9, store), "the holder may renew"
        assert not acquire("two", 18.9, second)
        assert acquire("two", 19, second), "an expired lease may be taken"
        assert not acquire("one", 20, store)
        with store.write() as unit:
            unit.leases.release("scheduler", "one")
        assert not acquire("one", 21, store), "only its holder can release a lease"
        with second.write() as unit:
            unit.leases.release("scheduler", "two")
        assert acquire("one", 22, store)

    def test_remains_are_kept_until_they_are_cleared(self, store: Store) -> None:
        one, two, here = JobId("job-1"), JobId("job-2"), ClusterName("here")
        with store.write() as unit:
            unit.remains.add(two, ClusterName("there"))
            unit.remains.add(one, here)
            with pytest.raises(Duplicate):
                unit.remains.add(one, here)
        with store.write() as unit:
            assert unit.remains.all() == ((one, here), (two, ClusterName("there")))
            assert unit.remains.find(one) == here
            unit.remains.delete(one)
            unit.remains.delete(JobId("unknown"))
        with store.read() as view:
            assert view.remains.find(one) is None
            assert view.remains.all() == ((two, ClusterName("there")),)

    # The whole

    def test_a_store_can_be_checked_and_closed(self, store: Store) -> None:
        store.check()
        store.check()
        store.close()
        with pytest.raises(Unavailable):
            store.check()
        with pytest.raises(Unavailable), store.read():
            pass
