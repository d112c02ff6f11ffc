"""The HDFS store against a real cluster: the contract, and what is particular to it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from paddleflow.adapters.objects.hdfs import HdfsStore, endpoints_of, open_hdfs
from paddleflow.domain.errors import Denied, Invalid, NotFound, Unavailable
from paddleflow.ports.objects import ObjectStore
from tests.objects.conftest import QUICK
from tests.objects.contract import NOT_UTF8, ObjectStoreContract, listed, put
from tests.objects.hadoop.cluster import HdfsCluster, start_hdfs
from tests.objects.proxy import Fault, FaultProxy, Pass, Refuse, Reset, Truncate
from tests.ports import reserve_port

WITH_HDFS = pytest.mark.skipif(
    not os.environ.get("PADDLEFLOW_TEST_HDFS"),
    reason="starting HDFS takes Java and half a minute: set PADDLEFLOW_TEST_HDFS=1 (make test-hdfs) to run these",
)
_roots = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    cluster = start_hdfs(tmp_path_factory.mktemp("hdfs"))
    yield cluster
    cluster.stop()


@WITH_HDFS
class TestHdfsStore(ObjectStoreContract):
    refused_names = ("semi;colon:comma,", NOT_UTF8)
    examples = 4
    many = 120

    @pytest.fixture
    def make_store(self, cluster: HdfsCluster) -> Iterator[Callable[[], ObjectStore]]:
        stores: list[HdfsStore] = []

        def make() -> ObjectStore:
            root = f"contract{next(_roots)}"
            top = open_hdfs(cluster.address, "/", cluster.properties(), retry=QUICK)
            top.make_directory(root)
            top.close()
            stores.append(open_hdfs(cluster.address, root, cluster.properties(), retry=QUICK))
            return stores[-1]

        yield make
        for store in stores:
            store.close()

    def test_modes_and_times(self, store: ObjectStore) -> None:
        """As in every store, but for owners, which are names."""
        put(store, "f", b"x", mode=0o640)
        store.make_directory("d", mode=0o750)
        assert store.stat("f").mode == 0o640 and store.stat("d").mode == 0o750
        assert listed(store)["f"].mode == 0o640
        store.set_modes("f", mode=0o604, modified_ns=1_234_567_890_123_000_000)
        assert (store.stat("f").mode, store.stat("f").modified_ns) == (0o604, 1_234_567_890_123_000_000)
        put(store, "f", b"another")
        assert store.stat("f").mode == 0o604, "writing anew keeps the permissions"
        assert store.stat("f").uid is None and store.stat("f").gid is None
        for change in ({"uid": 1}, {"gid": 1}):
            with pytest.raises(Invalid, match="names in HDFS"):
                store.set_modes("f", **change)
        with pytest.raises(NotFound):
            store.set_modes("none", mode=0o600)


# Properties


@pytest.mark.parametrize(
    ("address", "changes", "field"),
    [
        ("host:9000", {"user": ""}, "user"),
        ("", {}, "url"),
        ("host:9000,,", {}, "url"),
        ("host:9000", {"webhdfs": "host:9870"}, "webhdfs"),
        ("host:9000", {"webhdfs": "http://host:9870/path"}, "webhdfs"),
        ("host:9000", {"webhdfs": "http://a:1,ftp://b:2"}, "webhdfs"),
        ("host:9000", {"blockSize": "64 MB"}, "blockSize"),
        ("host:9000", {"replication": "0"}, "replication"),
        ("host:9000", {"kerberos.principal": "me@REALM", "kerberos.keytab.data": "AAAA"}, "kerberos.keytab.data"),
    ],
)
def test_a_property_that_cannot_be_is_named(address: str, changes: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        open_hdfs(address, "/data", {"user": "me", "group": "us"} | changes)
    assert caught.value.details == {"field": field}


@pytest.mark.parametrize(
    ("address", "given", "expected"),
    [
        ("nn:9000", "", ["http://nn:9870"]),
        ("nn", "", ["http://nn:9870"]),
        ("a:9000,b:9000", "", ["http://a:9870", "http://b:9870"]),
        ("a:9000", "https://x:9871, http://y:1/", ["https://x:9871", "http://y:1"]),
    ],
)
def test_where_the_name_nodes_serve(address: str, given: str, expected: list[str]) -> None:
    assert endpoints_of(address, given) == expected


def test_nobody_listening_is_told_with_what_to_set() -> None:
    properties = {"user": "me", "webhdfs": f"http://127.0.0.1:{reserve_port()}"}
    store = open_hdfs("127.0.0.1:1", "/", properties, retry=QUICK)
    with pytest.raises(Unavailable, match=r"cannot be reached.*set the property webhdfs"):
        store.check()
    store.close()


# A real cluster


@pytest.fixture
def root(cluster: HdfsCluster) -> Iterator[str]:
    """A new directory that anybody may write into."""
    name = f"test{next(_roots)}"
    top = open_hdfs(cluster.address, "/", cluster.properties(), retry=QUICK)
    top.make_directory(name, mode=0o777)
    yield name
    top.close()


@WITH_HDFS
def test_users_are_who_they_say(cluster: HdfsCluster, root: str) -> None:
    """Two users in one process, side by side."""
    alice = open_hdfs(cluster.address, root, cluster.properties(user="alice"), retry=QUICK)
    bob = open_hdfs(cluster.address, root, cluster.properties(user="bob"), retry=QUICK)
    alice.make_directory("private", mode=0o700)
    put(alice, "private/f", b"hers")
    for call in (
        lambda: bob.stat("private/f"),
        lambda: listed(bob, "private"),
        lambda: bob.read("private/f", 0, 10),
        lambda: put(bob, "private/g", b""),
        lambda: bob.set_modes("private", mode=0o777),
    ):
        with pytest.raises(Denied):
            call()
    assert alice.read("private/f", 0, 10) == b"hers"
    alice.close()
    bob.close()


@WITH_HDFS
def test_a_name_node_that_is_gone_is_passed_over(cluster: HdfsCluster, root: str) -> None:
    both = f"http://127.0.0.1:{reserve_port()},http://127.0.0.1:{cluster.http_port}"
    store = open_hdfs("a:1,b:1", root, cluster.properties(webhdfs=both), retry=QUICK)
    store.make_directory("d")
    put(store, "d/f", b"1")
    store.rename("d/f", "g")
    assert store.read("g", 0, 10) == b"1"
    store.close()


@WITH_HDFS
def test_a_missing_root_is_told(cluster: HdfsCluster, root: str) -> None:
    store = open_hdfs(cluster.address, f"{root}/none", cluster.properties(), retry=QUICK)
    with pytest.raises(NotFound, match="make it, or correct it"):
        store.check()
    store.close()


@WITH_HDFS
def test_what_writers_left_behind_is_hidden_and_goes_with_its_directory(cluster: HdfsCluster, root: str) -> None:
    store = open_hdfs(cluster.address, root, cluster.properties(), retry=QUICK)
    for name in ("d", "e"):
        store.make_directory(name)
        store._nodes.create(f"/{root}/{name}/.pf-left", 3, iter([b"abc"]))
    assert listed(store, "d") == {}
    store.remove_directory("d")
    store.make_directory("f")
    store.rename("f", "e")
    assert set(listed(store)) == {"e"}
    store.close()


@pytest.fixture
def proxy(cluster: HdfsCluster) -> Iterator[FaultProxy]:
    proxy = FaultProxy(cluster.http_port)
    yield proxy
    proxy.close()


@WITH_HDFS
@pytest.mark.parametrize("fault", [Reset(), Reset(300), Truncate(10), Refuse(503)], ids=repr)
def test_questions_are_asked_again(cluster: HdfsCluster, proxy: FaultProxy, root: str, fault: Fault) -> None:
    content = os.urandom(300_000)
    direct = open_hdfs(cluster.address, root, cluster.properties(), retry=QUICK)
    put(direct, "f", content)
    store = open_hdfs(cluster.address, root, cluster.properties(webhdfs=proxy.endpoint), retry=QUICK)
    store.stat("f")
    proxy.plan("GET", fault, fault)
    assert store.read("f", 1000, 200_000) == content[1000:201_000]
    proxy.plan("GET", fault)
    assert set(listed(store)) == {"f"}
    assert not proxy.left
    store.close()
    direct.close()


@WITH_HDFS
def test_a_change_whose_answer_is_lost_says_that_it_may_have_happened(
    cluster: HdfsCluster, proxy: FaultProxy, root: str
) -> None:
    store = open_hdfs(cluster.address, root, cluster.properties(webhdfs=proxy.endpoint), retry=QUICK)
    put(store, "f", b"1")
    proxy.plan("PUT", Reset())
    with pytest.raises(Unavailable, match="may have been changed"):
        store.rename("f", "g")
    assert set(listed(store)) == {"g"}
    proxy.plan("DELETE", Reset())
    with pytest.raises(Unavailable, match="may have been changed"):
        store.delete("g")
    assert listed(store) == {} and proxy.count("DELETE") == 1
    store.close()


@WITH_HDFS
def test_a_write_that_breaks_is_made_again_whole(cluster: HdfsCluster, proxy: FaultProxy, root: str) -> None:
    store = open_hdfs(cluster.address, root, cluster.properties(webhdfs=proxy.endpoint), retry=QUICK)
    put(store, "f", b"as it was")
    content = os.urandom(3_000_000)
    proxy.plan("PUT", Pass(), Reset(), Pass(), Pass(), Reset())
    written = put(store, "f", content)
    assert not proxy.left
    assert store.read("f", 0, 4_000_000, version=written.version) == content
    assert set(listed(store)) == {"f"}
    store.close()
