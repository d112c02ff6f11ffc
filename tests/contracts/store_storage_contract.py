"""What every store must keep of what belongs to a filesystem."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.errors import Conflict, Duplicate, Stale
from paddleflow.domain.ids import FilesystemId, MountId, SnapshotId
from paddleflow.domain.snapshots import SnapshotState
from paddleflow.ports.store import Store
from tests.contracts import samples
from tests.contracts.samples import at
from tests.contracts.store_contract import page_through

DATA, MORE = FilesystemId("fs-alice-data"), FilesystemId("fs-alice-more")


def two_filesystems(store: Store) -> None:
    with store.write() as unit:
        unit.filesystems.add(samples.filesystem("data"))
        unit.filesystems.add(samples.filesystem("more"))


class StoreStorageContract:
    def test_links_are_found_by_filesystem_and_path(self, store: Store) -> None:
        two_filesystems(store)
        with store.write() as unit:
            kept = [unit.links.add(samples.link(path)) for path in ("/b", "/a", "/a b/ü")]
            other = unit.links.add(samples.link("/b", MORE))
            with pytest.raises(Duplicate):
                unit.links.add(samples.link("/b"))
        with store.read() as view:
            assert view.links.of_filesystem(DATA) == tuple(kept), "the oldest first"
            assert view.links.find(MORE, "/b") == other
            assert view.links.find(MORE, "/a") is None
            assert page_through(lambda request: view.links.page(DATA, request), 2) == kept
        with store.write() as unit:
            unit.links.delete(DATA, "/b")
        with store.read() as view:
            assert view.links.find(DATA, "/b") is None
            assert view.links.find(MORE, "/b") == other

    def test_a_cache_configuration_is_one_for_a_filesystem(self, store: Store) -> None:
        two_filesystems(store)
        with store.write() as unit:
            kept = unit.cache_configs.add(samples.cache_config())
            with pytest.raises(Duplicate):
                unit.cache_configs.add(samples.cache_config())
        with store.read() as view:
            assert view.cache_configs.find(DATA) == kept
            assert view.cache_configs.find(MORE) is None
        with store.write() as unit:
            changed = unit.cache_configs.save(replace(kept, cache_dir="", debug=False, updated_at=at(5)))
            with pytest.raises(Stale):
                unit.cache_configs.save(kept)
        with store.read() as view:
            assert view.cache_configs.find(DATA) == changed
        with store.write() as unit:
            unit.cache_configs.delete(DATA)
        with store.read() as view:
            assert view.cache_configs.find(DATA) is None

    def test_mounts_are_told_apart_by_when_they_were_seen(self, store: Store) -> None:
        two_filesystems(store)
        with store.write() as unit:
            old = unit.mounts.add(samples.mount("mount-1", seen_at=at(1)))
            new = unit.mounts.add(samples.mount("mount-2", seen_at=at(10), snapshot=None, read_only=False))
            unit.mounts.add(samples.mount("mount-3", MORE, seen_at=at(10)))
            with pytest.raises(Duplicate):
                unit.mounts.add(samples.mount("mount-1"))
        with store.read() as view:
            assert view.mounts.of_filesystem(DATA, at(1)) == (old, new)
            assert view.mounts.of_filesystem(DATA, at(2)) == (new,)
        with store.write() as unit:
            seen = unit.mounts.save(replace(old, seen_at=at(20)))
            with pytest.raises(Stale):
                unit.mounts.save(old)
        with store.write() as unit:
            assert unit.mounts.delete_unseen(at(11)) == 2
        with store.read() as view:
            assert view.mounts.find(MountId("mount-1")) == seen
            assert view.mounts.find(MountId("mount-2")) is None
        with store.write() as unit:
            unit.mounts.delete(MountId("mount-1"))
        with store.read() as view:
            assert view.mounts.find(MountId("mount-1")) is None

    def test_a_cache_report_takes_the_place_of_the_one_before(self, store: Store) -> None:
        two_filesystems(store)
        first = samples.cache_report(reported_at=at(1))
        second = samples.cache_report(reported_at=at(2), cached_bytes=9, prefixes={})
        with store.write() as unit:
            unit.cache_reports.put(first)
            unit.cache_reports.put(second)
            unit.cache_reports.put(samples.cache_report("node-0", reported_at=at(3)))
            unit.cache_reports.put(samples.cache_report(mount_id="mount-2", reported_at=at(4)))
            unit.cache_reports.put(samples.cache_report(fs_id=MORE, reported_at=at(5)))
        with store.read() as view:
            told = view.cache_reports.of_filesystem(DATA)
            assert [(report.node, report.mount_id) for report in told] == [
                ("node-0", "mount-1"), ("node-1", "mount-1"), ("node-1", "mount-2"),
            ]  # fmt: skip
            assert told[1] == second
            fresh = view.cache_reports.since(at(3))
            assert [(report.fs_id, report.node) for report in fresh] == [
                (DATA, "node-0"), (DATA, "node-1"), (MORE, "node-1"),
            ]  # fmt: skip
        with store.write() as unit:
            assert unit.cache_reports.delete_before(at(4)) == 2
        with store.read() as view:
            assert len(view.cache_reports.since(at(0))) == 2

    def test_snapshots_are_listed_by_filesystem_and_by_state(self, store: Store) -> None:
        two_filesystems(store)
        with store.write() as unit:
            made = unit.snapshots.add(samples.snapshot("snap-3", state=SnapshotState.CREATING))
            ready = unit.snapshots.add(samples.snapshot("snap-1"))
            other = unit.snapshots.add(samples.snapshot("snap-2", MORE, state=SnapshotState.DELETING))
            with pytest.raises(Duplicate):
                unit.snapshots.add(samples.snapshot("snap-1"))
        with store.read() as view:
            assert view.snapshots.find(SnapshotId("snap-1")) == ready
            assert page_through(lambda request: view.snapshots.page(DATA, request), 1) == [made, ready]
            states = frozenset({SnapshotState.DELETING, SnapshotState.CREATING})
            assert view.snapshots.in_state(states) == (made, other)
            assert view.snapshots.in_state(frozenset()) == ()
        with store.write() as unit:
            done = unit.snapshots.save(replace(made, state=SnapshotState.READY, files=9, bytes=99, updated_at=at(3)))
            with pytest.raises(Stale):
                unit.snapshots.save(made)
            unit.snapshots.delete(SnapshotId("snap-1"))
        with store.read() as view:
            assert page_through(lambda request: view.snapshots.page(DATA, request), 5) == [done]

    def test_all_of_it_goes_with_its_filesystem_and_only_then(self, store: Store) -> None:
        two_filesystems(store)
        with store.write() as unit:
            for fs_id in (DATA, MORE):
                unit.links.add(samples.link(fs_id=fs_id))
                unit.cache_configs.add(samples.cache_config(fs_id))
                unit.mounts.add(samples.mount(f"mount-{fs_id}", fs_id))
                unit.cache_reports.put(samples.cache_report(fs_id=fs_id))
                unit.snapshots.add(samples.snapshot(f"snap-{fs_id}", fs_id))
        with store.write() as unit:
            unit.filesystems.delete(DATA)
        with store.read() as view:
            for fs_id, left in ((DATA, 0), (MORE, 1)):
                assert len(view.links.of_filesystem(fs_id)) == left
                assert (view.cache_configs.find(fs_id) is not None) == left
                assert len(view.mounts.of_filesystem(fs_id, at(0))) == left
                assert len(view.cache_reports.of_filesystem(fs_id)) == left
                assert (view.snapshots.find(SnapshotId(f"snap-{fs_id}")) is not None) == left

    def test_nothing_belongs_to_a_filesystem_that_is_not_there(self, store: Store) -> None:
        two_filesystems(store)
        nowhere = FilesystemId("fs-alice-none")
        with pytest.raises(Conflict), store.write() as unit:
            unit.links.add(samples.link(fs_id=nowhere))
        with pytest.raises(Conflict), store.write() as unit:
            unit.mounts.add(samples.mount(fs_id=nowhere))
        with pytest.raises(Conflict), store.write() as unit:
            unit.cache_reports.put(samples.cache_report(fs_id=nowhere))
        with store.read() as view:
            assert view.links.of_filesystem(nowhere) == ()
