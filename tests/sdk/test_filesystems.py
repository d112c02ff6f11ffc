"""Filesystems, links, caches, mounts and snapshots of the client: what is sent, and what comes of the answers."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from typing import Any

import pytest

from paddleflow import Client
from paddleflow.domain.errors import NotFound, Unavailable
from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.fs_caches import CacheStats
from paddleflow.sdk.mounts import MOUNT_TOKEN_HEADER, MountDesk
from tests.sdk.recorded_server import RecordedServer, error, lost, ok
from tests.waiting import DEADLINE_S

LINK = {
    "fsName": "data",
    "fsPath": "/more",
    "serverAddress": "",
    "type": "local",
    "username": "root",
    "subPath": "/d",
    "properties": {},
}
SNAPSHOT = {
    "snapshotID": "snap-1",
    "fsName": "data",
    "fsID": "fs-root-data",
    "username": "root",
    "name": "monday",
    "subPath": "/set",
    "kind": "manifest",
    "state": "ready",
    "files": 3,
    "bytes": 30,
    "message": "",
    "createTime": "2024-01-01 00:00:00",
    "updateTime": "2024-01-01 00:00:00",
}
MOUNT = {
    "mountID": "mount-1",
    "fsID": "fs-root-data",
    "fsName": "data",
    "username": "root",
    "node": "n1",
    "mountpoint": "/mnt",
    "readOnly": True,
    "snapshot": "",
    "since": "2024-01-01 00:00:00",
    "lastSeen": "2024-01-01 00:00:01",
    "lastReport": None,
}


@pytest.mark.parametrize(
    ("call", "endpoint", "body"),
    [
        (
            lambda c: c.update_fs("data", "s3://b/p", properties={"secretKey": "******"}),
            ("PUT", "/fs"),
            {"name": "data", "url": "s3://b/p", "properties": {"secretKey": "******"}},
        ),
        (
            lambda c: c.add_link("data", "/more", "s3://b", "alice", {"k": "v"}),
            ("POST", "/link"),
            {"fsName": "data", "fsPath": "/more", "url": "s3://b", "username": "alice", "properties": {"k": "v"}},
        ),
        (lambda c: c.create_cache("data"), ("POST", "/fsCache"), {"fsName": "data"}),
        (
            lambda c: c.create_cache("data", {"cacheDir": "/c", "blockSize": "4096", "cleanCache": "true"}, "alice"),
            ("POST", "/fsCache"),
            {"fsName": "data", "cacheDir": "/c", "blockSize": 4096, "cleanCache": True, "username": "alice"},
        ),
        (lambda c: c.update_fs_cache("data", {"quota": 5}), ("PUT", "/fsCache/data"), {"quota": 5}),
        (
            lambda c: c.create_snapshot("data", "monday", "/set", copy=True),
            ("POST", "/fs/data/snapshot"),
            {"name": "monday", "subPath": "/set", "copy": True},
        ),
        (
            lambda c: c.open_mount("data", read_only=True, snapshot="snap-1", node="n1", mountpoint="/mnt"),
            ("POST", "/fsMount"),
            {"fsName": "data", "readOnly": True, "snapshot": "snap-1", "node": "n1", "mountpoint": "/mnt"},
        ),
    ],
)
def test_what_is_sent(
    server: RecordedServer, client: Client, call: Any, endpoint: tuple[str, str], body: dict[str, Any]
) -> None:
    answer = {"snapshotID": "snap-1", "mountID": "m", "token": "t", "fsID": "f", "expiresAt": ""}
    server.on(*endpoint, ok(answer, 201))
    assert call(client)[0] is True
    assert server.asked[-1].body == body


@pytest.mark.parametrize(
    ("call", "endpoint", "query"),
    [
        (lambda c: c.delete_link("data", "/more"), ("DELETE", "/link/data"), {"fsPath": "/more"}),
        (lambda c: c.delete_fs_cache("data", "alice"), ("DELETE", "/fsCache/data"), {"username": "alice"}),
        (lambda c: c.delete_snapshot("data", "snap-1"), ("DELETE", "/fs/data/snapshot/snap-1"), {}),
        (lambda c: c.close_mount("mount-1"), ("DELETE", "/fsMount/mount-1"), {}),
    ],
)
def test_what_is_taken_away(
    server: RecordedServer, client: Client, call: Any, endpoint: tuple[str, str], query: dict[str, str]
) -> None:
    server.on(*endpoint, ok())
    assert call(client) == (True, None)
    assert server.asked[-1].query == query


def test_links(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/link/data", ok({"linkList": [LINK]}))
    _, links = client.list_link("data", maxsize=7)
    assert server.asked[-1].query == {"maxKeys": "7"}
    assert (links[0].fspath, links[0].fstype, links[0].subpath, links[0].server_adddress) == (
        "/more",
        "local",
        "/d",
        "",
    )
    assert client.show_link("data", "/more")[1] == links
    server.on("GET", "/link/data", ok({"linkList": []}))
    with pytest.raises(NotFound, match="no link at"):
        client.show_link("data", "/more")


def test_cache_configuration(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/fsCache/data", ok({"fsName": "data", "username": "root", "cacheDir": "/c", "blockSize": 4096}))
    _, config = client.get_fs_cache("data")
    assert (config.fsname, config.username, config.cachedir, config.metadriver, config.blocksize) == (
        "data",
        "root",
        "/c",
        "",
        4096,
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"blockSize": "much"}, "options[blockSize] should be a whole number"),
        ({"cleanCache": "perhaps"}, "options[cleanCache] should be true or false"),
        ({"cachedir": "/c"}, "options[cachedir] is unknown; there are cacheDir"),
    ],
)
def test_bad_cache_options_are_named(
    server: RecordedServer, client: Client, options: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        client.create_cache("data", options)
    assert said in caught.value.get_message()
    assert server.asked[-1].path == "/login", "nothing was sent"


def test_cache_statistics(server: RecordedServer, client: Client) -> None:
    node = {"node": "n1", "bytes": 10, "files": 1, "hits": 3, "misses": 1, "hitBytes": 30, "missBytes": 10}
    server.on("GET", "/fsCache/stats/data", ok({"nodes": [{**node, "updateTime": "now"}]}))
    _, stats = client.fs_cache_stats("data")
    assert stats == [CacheStats("n1", 10, 1, 3, 1, 30, 10, "now")]
    assert stats[0].hit_ratio == 0.75
    assert CacheStats("n1", 0, 0, 0, 0, 0, 0, "").hit_ratio is None


def test_snapshots(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/fs/data/snapshot", ok({"snapshotList": [SNAPSHOT]}))
    server.on("GET", "/fs/data/snapshot/snap-1", ok(SNAPSHOT))
    server.on("POST", "/fs/data/snapshot", ok({"snapshotID": "snap-1"}, 201))
    assert client.create_snapshot("data") == (True, "snap-1")
    _, one = client.show_snapshot("data", "snap-1")
    assert (one.snapshot_id, one.state, one.files, one.bytes, one.sub_path) == ("snap-1", "ready", 3, 30, "/set")
    assert client.list_snapshots("data") == (True, [one])


def test_mounts(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/fsMount", ok({"mountList": [MOUNT]}))
    _, mounts = client.list_mounts("data")
    assert server.asked[-1].query == {"fsName": "data"}
    assert (mounts[0].node, mounts[0].mountpoint, mounts[0].read_only) == ("n1", "/mnt", True)


def test_a_mount_needs_its_token_alone(server: RecordedServer) -> None:
    server.on("POST", "/fsMount/access", lost(), ok({"sealed": "s", "token": "t2", "expiresAt": "later"}))
    server.on("POST", "/fsCache/report", ok())
    server.on("DELETE", "/fsMount", ok())
    desk = MountDesk.at("127.0.0.1", server.port)
    access = desk.exchange("t1")
    assert (access.sealed, access.token, access.expires_at) == ("s", "t2", "later")
    desk.report("t2", {"node": "n1", "mounts": []})
    desk.give_back("t2")
    desk.close()
    assert [one.headers[MOUNT_TOKEN_HEADER] for one in server.asked] == ["t1", "t1", "t2", "t2"]
    assert not any("x-pf-authorization" in one.headers for one in server.asked)
    assert not server.calls("POST", "/login")


def test_secrets_are_not_in_what_is_printed(server: RecordedServer, client: Client) -> None:
    answer = {"mountID": "m", "token": "hunter2", "fsID": "f", "expiresAt": ""}
    server.on("POST", "/fsMount", ok(answer, 201))
    server.on("POST", "/fsMount/access", ok({"sealed": "hunter2", "token": "hunter2", "expiresAt": ""}))
    _, ticket = client.open_mount("data")
    assert "hunter2" not in repr(ticket) + repr(client.mount_desk.exchange(ticket.token))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda c: c.add_link("", "/p", "s3://b"), "InvalidFSName"),
        (lambda c: c.add_link("d", " ", "s3://b"), "InvalidFSPath"),
        (lambda c: c.add_link("d", "/p", ""), "InvalidURL"),
        (lambda c: c.show_snapshot("d", ""), "InvalidSnapshot"),
        (lambda c: c.open_mount(""), "InvalidFSName"),
        (lambda c: c.mount_desk.exchange(""), "InvalidMountToken"),
    ],
)
def test_what_is_empty_is_refused_here(server: RecordedServer, client: Client, call: Any, code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        call(client)
    assert caught.value.get_code() == code
    assert server.asked[-1].path == "/login", "nothing was sent"


def test_the_client_stays_light() -> None:
    code = (
        "import sys, paddleflow; paddleflow.Client;"
        "heavy = {'opendal', 'paramiko', 'xxhash', 'fsspec', 'cryptography', 'paddleflow.files', 'paddleflow.pfs'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_library_is_named_with_its_cure(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "paddleflow.files", raising=False)

    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "paddleflow.files":
                raise ModuleNotFoundError("No module named 'xxhash'", name="xxhash")

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(Unavailable, match=r"pip install 'paddleflow\[fs\]'"):
        _ = client.fs


def test_a_copy_of_the_client_works_in_another_process(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/fs", error(400, "AuthInvalidToken", "expired"), ok({"fsList": [{"name": "data"}]}))
    other = pickle.loads(pickle.dumps(client))
    assert [one.name for one in other.list_fs()[1]] == ["data"]
    other.close()


def test_a_forked_process_makes_its_own_connections(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/fs", ok({"fsList": [{"name": "data"}]}))
    client.list_fs()
    ours = client._transport._lazy_client
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def work() -> None:
        is_fresh = client._transport._lazy_client is None
        there.send((is_fresh, [one.name for one in client.list_fs()[1]]))

    process = context.Process(target=work)
    process.start()
    try:
        assert here.poll(DEADLINE_S), "the child never answered"
        assert here.recv() == (True, ["data"])
        process.join(DEADLINE_S)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
    assert client.list_fs()[0], "the parent goes on with its own"
    assert client._transport._lazy_client is ours
