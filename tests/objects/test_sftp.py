"""The SFTP store against a real OpenSSH server: the contract, and what is particular to it."""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import paramiko
import pytest

from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.adapters.objects.sftp import SftpStore, open_sftp
from paddleflow.adapters.objects.ssh import SshLimits, Trust, parse_login
from paddleflow.domain.errors import Denied, DiskFull, Invalid, NotFound, Stale, Unavailable
from paddleflow.ports.objects import ObjectStore
from tests.objects.conftest import QUICK
from tests.objects.contract import ObjectStoreContract, listed, put, walked
from tests.objects.cutter import Cutter, Meanwhile
from tests.objects.password_server import PasswordServer
from tests.objects.sshd import SshServer, make_key, start_sshd
from tests.ports import reserve_port
from tests.small_disk import small_disk


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    server = start_sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


class TestSftpStore(ObjectStoreContract):
    examples = 25

    @pytest.fixture
    def make_store(self, server: SshServer, tmp_path: Path) -> Iterator[Callable[[], ObjectStore]]:
        numbers = itertools.count()
        stores: list[SftpStore] = []

        def make() -> ObjectStore:
            root = tmp_path / f"root{next(numbers)}"
            root.mkdir()
            stores.append(open_sftp(server.address, str(root), server.properties()))
            return stores[-1]

        yield make
        for store in stores:
            store.close()


# Who is at the other end


def test_without_a_known_key_the_server_is_refused_and_told_how_to_trust_it(server: SshServer, tmp_path: Path) -> None:
    store = open_sftp(server.address, str(tmp_path), server.properties(hostKey=""), trust=Trust(known_hosts=()))
    with pytest.raises(Denied, match=r"SHA256:.*set the property hostKey to: ssh-ed25519 AAAA") as caught:
        store.check()
    store.close()
    told = str(caught.value.details["host_key"])
    store = open_sftp(server.address, str(tmp_path), server.properties(hostKey=told), trust=Trust(known_hosts=()))
    store.check()
    store.close()


def test_another_key_than_the_known_one_is_refused(server: SshServer, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {other}\n")
    for properties, trust in (
        (server.properties(hostKey=other), Trust(known_hosts=())),
        (server.properties(hostKey=""), Trust(known_hosts=(str(known),))),
        (server.properties(hostKey=""), Trust(known_hosts=(str(known),), remember_in=str(tmp_path / "remembered"))),
    ):
        store = open_sftp(server.address, str(tmp_path), properties, trust=trust)
        with pytest.raises(Denied, match="somebody may stand in between"):
            store.check()
        store.close()
    assert not (tmp_path / "remembered").exists()


def test_the_known_hosts_of_the_machine_are_believed(server: SshServer, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"# comment\nother.example ssh-rsa AAAA\n[127.0.0.1]:{server.port} {server.host_key}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert "127.0.0.1" not in known.read_text()
    trust = Trust(known_hosts=(str(tmp_path / "none"), str(known)))
    store = open_sftp(server.address, str(tmp_path), server.properties(hostKey=""), trust=trust)
    store.check()
    store.close()


def test_a_key_is_remembered_at_first_use_where_a_file_was_given(server: SshServer, tmp_path: Path) -> None:
    remembered = tmp_path / "new" / "known_hosts"
    trust = Trust(known_hosts=(), remember_in=str(remembered))
    for _ in range(2):
        store = open_sftp(server.address, str(tmp_path), server.properties(hostKey=""), trust=trust)
        store.check()
        store.close()
    assert remembered.read_text() == f"[127.0.0.1]:{server.port} {server.host_key}\n"
    assert stat.S_IMODE(remembered.stat().st_mode) == 0o600


# Who we are


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_kind_of_key_logs_in(server: SshServer, tmp_path: Path, kind: str) -> None:
    pem = make_key(tmp_path / "key", kind)
    with (server.directory / "authorized_keys").open("a") as keys:
        keys.write((tmp_path / "key.pub").read_text())
    store = open_sftp(server.address, str(tmp_path), server.properties(privateKey=pem))
    store.check()
    store.close()


def test_a_wrong_key_or_password_is_denied_without_being_told(server: SshServer, tmp_path: Path) -> None:
    pem = make_key(tmp_path / "key")
    for properties in (server.properties(privateKey=pem), server.properties(privateKey="", password="hunter2-secret")):
        store = open_sftp(server.address, str(tmp_path), properties)
        with pytest.raises(Denied, match="does not let") as caught:
            store.check()
        store.close()
        assert "hunter2" not in str(caught.value) and "PRIVATE" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"user": ""}, "user"),
        ({"privateKey": ""}, "password"),
        ({"hostKey": "not a key"}, "hostKey"),
        ({"hostKey": "ssh-ed25519 AAAA%%%"}, "hostKey"),
    ],
)
def test_a_property_that_cannot_be_is_named(server: SshServer, changes: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        open_sftp(server.address, "/", server.properties(**changes))
    assert caught.value.details == {"field": field}


@pytest.mark.parametrize("address", ["", ":", "host:0", "host:99999", "host:ssh", "a b:22"])
def test_an_address_that_cannot_be_is_refused(server: SshServer, address: str) -> None:
    with pytest.raises(Invalid) as caught:
        open_sftp(address, "/", server.properties())
    assert caught.value.details == {"field": "url"}


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("host", "host"),
        ("host:22", "host"),
        ("host:2222", "[host]:2222"),
        ("[::1]:2222", "[::1]:2222"),
        ("[::1]", "::1"),
    ],
)
def test_addresses(address: str, place: str) -> None:
    login = parse_login(address, {"user": "u", "password": "p-secret"})
    assert login.place == place
    assert "p-secret" not in repr(login)


def test_private_keys_that_cannot_be_used_are_named(server: SshServer, tmp_path: Path) -> None:
    for pem, told in (
        (make_key(tmp_path / "key", passphrase="five words"), "passphrase"),
        ("nonsense", "no private key"),
    ):
        store = open_sftp(server.address, str(tmp_path), server.properties(privateKey=pem))
        with pytest.raises(Invalid, match=told):
            store.check()
        store.close()


def test_a_password_logs_in(tmp_path: Path) -> None:
    with PasswordServer(tmp_path, user="alice", password="right") as server:
        properties = {"user": "alice", "password": "right", "hostKey": server.host_key}
        store = open_sftp(f"127.0.0.1:{server.port}", str(tmp_path), properties)
        store.check()
        assert put(store, "f", b"1").size == 1 and store.usage() is None
        store.close()
        store = open_sftp(f"127.0.0.1:{server.port}", str(tmp_path), properties | {"password": "wrong"})
        with pytest.raises(Denied, match="check user and password"):
            store.check()
        store.close()


def test_a_connection_that_ends_before_the_password_was_looked_at_is_made_again(tmp_path: Path) -> None:
    """The library calls this a failed authentication too, but nobody was refused."""
    met: list[paramiko.Transport] = []

    def hang_up_twice(connection: paramiko.Transport) -> None:
        met.append(connection)
        if len(met) <= 2:
            connection.close()

    with PasswordServer(tmp_path, user="alice", password="right", meet=hang_up_twice) as server:
        properties = {"user": "alice", "password": "right", "hostKey": server.host_key}
        with closing(open_sftp(f"127.0.0.1:{server.port}", str(tmp_path), properties, retry=QUICK)) as store:
            store.check()
    assert len(met) == 3


def test_a_server_that_never_looks_at_the_password_is_unavailable(tmp_path: Path) -> None:
    over = threading.Event()
    with PasswordServer(tmp_path, user="alice", password="right", meet=lambda _: over.wait()) as server:
        properties = {"user": "alice", "password": "right", "hostKey": server.host_key}
        once, limits = Retry(patience=Patience(attempts=1)), SshLimits(connect_s=0.5)
        store = open_sftp(f"127.0.0.1:{server.port}", str(tmp_path), properties, limits=limits, retry=once)
        try:
            with pytest.raises(Unavailable, match="could not be made"):
                store.check()
        finally:
            over.set()
            store.close()


def test_a_missing_root_is_told(server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for root, error in (("none", NotFound), ("file", Invalid)):
        store = open_sftp(server.address, str(tmp_path / root), server.properties())
        with pytest.raises(error, match=root):
            store.check()
        store.close()


def test_nobody_listening_is_unavailable() -> None:
    store = open_sftp(f"127.0.0.1:{reserve_port()}", "/", {"user": "u", "password": "p"}, retry=QUICK)
    with pytest.raises(Unavailable, match="cannot be reached"):
        store.check()
    store.close()


# Ways and links


def test_no_way_leads_through_a_link(server: SshServer, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "d").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(outside)
    (root / "d/up").symlink_to("../../outside")
    store = open_sftp(server.address, str(root), server.properties())
    for key in ("link/secret", "d/up/secret"):
        for call in (
            lambda key=key: store.stat(key),
            lambda key=key: store.read(key, 0, 10),
            lambda key=key: put(store, key, b"x"),
            lambda key=key: store.delete(key),
            lambda key=key: store.rename(key, "stolen"),
            lambda key=key: store.copy(key, "stolen"),
            lambda key=key: store.set_modes(key, mode=0o777),
            lambda key=key: store.make_link(key + "2", "x"),
            lambda key=key: store.make_directory(key + "3"),
        ):
            with pytest.raises(NotFound):
                call()
    with pytest.raises(Invalid):
        listed(store, "link")
    with pytest.raises(Invalid):
        store.copy("link", "stolen")
    assert os.listdir(outside) == ["secret"] and (outside / "secret").read_bytes() == b"secret"
    store.close()


def test_a_root_that_is_itself_a_link_is_a_root(server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "real/d").mkdir(parents=True)
    (tmp_path / "root").symlink_to(tmp_path / "real")
    store = open_sftp(server.address, str(tmp_path / "root"), server.properties())
    store.check()
    put(store, "d/f", b"1")
    assert set(walked(store)) == {"d", "d/f"}
    store.close()


def test_a_pipe_is_no_file_and_nobody_waits_for_it(server: SshServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = open_sftp(server.address, str(tmp_path), server.properties())
    for call in (lambda: store.read("pipe", 0, 1), lambda: store.copy("pipe", "x")):
        with pytest.raises(Invalid, match="not a file"):
            call()
    store.close()


# Versions


def test_a_version_changes_with_every_content_even_within_a_second(server: SshServer, tmp_path: Path) -> None:
    store = open_sftp(server.address, str(tmp_path), server.properties())
    seen = set()
    for number in range(6):
        put(store, "new", b"%d" % number)
        seen.add(put(store, "f", b"%d" % number).version)
        store.rename("new", "f")
        seen.add(store.stat("f").version)
    assert len(seen) == 12
    store.close()


def test_a_file_dated_far_ahead_does_not_take_the_next_one_with_it(server: SshServer, tmp_path: Path) -> None:
    store = open_sftp(server.address, str(tmp_path), server.properties())
    ahead = time.time_ns() + 10**13
    put(store, "f", b"1")
    store.set_modes("f", modified_ns=ahead)
    old = store.stat("f")
    new = put(store, "f", b"2")
    assert new.version != old.version and new.modified_ns < old.modified_ns
    store.close()


def test_a_change_in_place_while_it_is_read_is_noticed(server: SshServer, tmp_path: Path) -> None:
    old, new = b"a" * 3_000_000, b"b" * 3_000_000

    def rewrite() -> None:
        with (tmp_path / "f").open("r+b") as file:
            file.write(new)
        os.utime(tmp_path / "f", (1, 1))

    @contextmanager
    def changed_on_the_way() -> Iterator[SftpStore]:
        (tmp_path / "f").write_bytes(old)
        with closing(Cutter(server.port)) as cutter:
            # More than looking takes, and less than the file is long: some of the old content is on its way.
            cutter.plan(Meanwhile(1_000_000, rewrite))
            with closing(open_sftp(cutter.address, str(tmp_path), server.properties())) as store:
                yield store

    with changed_on_the_way() as store:
        version = store.stat("f").version
        with pytest.raises(Stale):
            store.read("f", 0, len(old), version=version)
    with changed_on_the_way() as store:
        assert store.read("f", 0, len(old)) == new, "it is read again"


# Rights and room


def test_what_the_account_may_not_do_is_denied(server: SshServer, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may do everything: run by an ordinary user, this is tested")
    (tmp_path / "closed").mkdir(mode=0o500)
    store = open_sftp(server.address, str(tmp_path), server.properties())
    for call in (lambda: put(store, "closed/f", b""), lambda: store.make_directory("closed/d")):
        with pytest.raises(Denied, match="no right"):
            call()
    store.close()


def test_a_full_disk_is_told_as_such(server: SshServer, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "2m") as place:
        store = open_sftp(server.address, str(place), server.properties())
        put(store, "f", b"as it was")
        with pytest.raises(DiskFull, match="room"):
            put(store, "f", b"x" * 8_000_000)
        assert store.read("f", 0, 100) == b"as it was" and os.listdir(place) == ["f"]
        store.close()
