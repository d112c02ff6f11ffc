"""Filesystems made of several stores, and snapshots: what shows where, and what cannot be mixed up."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounted.places import local_store
from tests.pfs.mounts import mounted


def test_a_link_is_a_directory_of_another_store(tmp_path: Path, bucket: StorePlan) -> None:
    root, linked = local_store(tmp_path), local_store(tmp_path, "other", "deep/down/linked")
    objects = StorePlan(**{**bucket.to_json(), "path": "objects"})
    (tmp_path / "store" / "own").write_text("own")
    (tmp_path / "other" / "there").write_text("there")
    with mounted(tmp_path, root, linked, objects) as mount:
        at = mount.path
        assert sorted(os.listdir(at)) == ["deep", "objects", "own"]
        assert os.listdir(at / "deep") == ["down"]
        assert os.listdir(at / "deep" / "down") == ["linked"]
        assert (at / "deep/down/linked/there").read_text() == "there"
        (at / "objects" / "new").write_text("in a bucket")
        for source, target in (("own", "objects/own"), ("deep/down/linked/there", "there"), ("objects/new", "new")):
            with pytest.raises(OSError) as caught:
                os.rename(at / source, at / target)
            assert caught.value.errno == errno.EXDEV
            shutil.move(at / source, at / target)
        mount.kill_front()
        assert sorted(os.listdir(at)) == ["deep", "new", "objects", "there"]
        assert (at / "objects" / "own").read_text() == "own"
        assert (tmp_path / "store" / "new").read_text() == "in a bucket"
        for path in ("objects", "deep/down/linked", "deep/down", "deep"):
            with pytest.raises(OSError) as caught:
                os.rmdir(at / path)
            assert caught.value.errno in {errno.EBUSY, errno.ENOTEMPTY, errno.EPERM, errno.EACCES}, path
            with pytest.raises(OSError) as caught:
                os.rename(at / path, at / "elsewhere")
            assert caught.value.errno in {errno.EBUSY, errno.EXDEV, errno.ENOTEMPTY}, path
        assert sorted(os.listdir(at)) == ["deep", "new", "objects", "there"]
        assert os.listdir(tmp_path / "other") == []


def test_a_snapshot_shows_what_was_or_an_error(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "kept").write_bytes(b"as it was")
    (store / "changed").write_bytes(b"as it was")
    opened = StorePlan(type="local", root=str(store)).open()
    lines = [
        {
            "path": entry.key,
            "size": entry.size,
            "version": entry.version,
            "modified_ns": entry.modified_ns,
            "directory": False,
        }
        for entry in map(opened.stat, ("kept", "changed"))
    ]
    (store / ".snap").write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    (store / "changed").write_bytes(b"BY NOW IT IS ANOTHER")
    (store / "later").write_bytes(b"x")
    plan = StorePlan(type="local", root=str(store), manifest=".snap")
    with mounted(tmp_path, plan, read_only=True) as mount:
        assert sorted(os.listdir(mount.path)) == ["changed", "kept"]
        assert (mount.path / "kept").read_bytes() == b"as it was"
        with pytest.raises(OSError) as caught:
            (mount.path / "changed").read_bytes()
        assert caught.value.errno in {errno.ESTALE, errno.EIO}
        assert (mount.path / "changed").stat().st_size == len(b"as it was")
        with pytest.raises(OSError) as caught:
            (mount.path / "kept").write_bytes(b"")
        assert caught.value.errno == errno.EROFS
        (store / "kept").write_bytes(b"overwritten afterwards")
        assert (mount.path / "kept").read_bytes() == b"as it was", "it is in the cache"
        mount.kill_front()
        assert (mount.path / "kept").read_bytes() == b"as it was"
