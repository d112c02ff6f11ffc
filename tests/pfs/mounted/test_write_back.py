"""Closed and not uploaded yet, and then something dies: nothing that a program was told is safe is ever lost."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from paddleflow.pfs.fuse import device
from paddleflow.wiring.stores import StorePlan
from tests.objects.servers import S3Server
from tests.pfs.mounted.places import local_store, stamped
from tests.pfs.mounts import RealMount, mounted
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.timeout(300)


class Gate:
    """A door to a server that can be shut: whoever is inside then, or comes to stand in front of it, is held until it
    opens again, and then cut off. What was sent meanwhile never arrives: not even what a process wrote before it was
    killed, which would come after what others write later."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._turn = 0
        """Odd: it is shut."""
        self._visits: list[threading.Thread] = []
        self._open = threading.Event()
        self._open.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        self._turn += 1
        self._open.clear()

    def open(self) -> None:
        self._turn += self._turn % 2
        self._open.set()

    def close(self) -> None:
        self.open()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for visit in self._visits:
            visit.join(DEADLINE_S)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            visit = threading.Thread(target=self._connect, args=(client, self._turn), daemon=True)
            visit.start()
            self._visits.append(visit)

    def _connect(self, client: socket.socket, turn: int) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            back = threading.Thread(target=self._carry, args=(server, client, turn), daemon=True)
            back.start()
            self._carry(client, server, turn)
            back.join()

    def _carry(self, source: socket.socket, target: socket.socket, turn: int) -> None:
        with suppress(OSError):  # one side hung up: so does the other
            while data := source.recv(1 << 16):
                self._open.wait()
                if self._turn != turn:
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def gate(rclone: S3Server) -> Iterator[Gate]:
    made = Gate(rclone.port)
    yield made
    made.close()


@pytest.fixture
def gated(gate: Gate, bucket: StorePlan) -> StorePlan:
    address = f"http://127.0.0.1:{gate.port}"
    properties = {**bucket.properties, "endpoint": address}
    return StorePlan(type="s3", address=address, root=bucket.root, properties=properties)


def in_store(plan: StorePlan) -> set[str]:
    with closing(plan.open()) as store:
        return {entry.key for page in store.list("") for entry in page}


def kill_everything(mount: RealMount) -> None:
    figures = mount.figures()
    victims = [mount.report.pid, figures["front"], *figures["workers"]]
    for pid in victims:
        with suppress(ProcessLookupError):  # workers die with their front
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() and not is_dead(pid) for pid in victims))
    device.detach_broken(str(mount.path))


def is_dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_closed_and_not_uploaded_outlives_the_front(
    tmp_path: Path, gate: Gate, gated: StorePlan, bucket: StorePlan
) -> None:
    with mounted(tmp_path, gated, write_back=True) as mount:
        (mount.path / "warm").write_bytes(b"x")
        wait_for(lambda: in_store(bucket) == {"warm"})
        with open(mount.path / "file", "wb") as file:
            file.write(stamped(1, 300_000))
            gate.shut()
        with open(mount.path / "file", "rb") as file:
            assert file.read() == stamped(1, 300_000)
        mount.kill_front()
        gate.open()
        assert (mount.path / "file").read_bytes() == stamped(1, 300_000)
        wait_for(lambda: "file" in in_store(bucket))
        with open(mount.path / "last", "wb") as file:
            file.write(b"written, closed, unmounted")
    assert in_store(bucket) == {"file", "last", "warm"}, "unmounting waits for uploads"
    assert os.listdir(tmp_path / "state" / "staging") == []


def test_all_that_was_closed_or_synced_outlives_everything(
    tmp_path: Path, gate: Gate, gated: StorePlan, bucket: StorePlan
) -> None:
    with mounted(tmp_path, gated, write_back=True, meta_ttl=60.0) as mount:
        (mount.path / "base").write_bytes(b"first")
        (mount.path / "conflict").write_bytes(b"first")
        wait_for(lambda: in_store(bucket) == {"base", "conflict"})
        synced = open(mount.path / "synced", "wb", buffering=0)  # noqa: SIM115 - it outlives the mount
        synced.write(b"synced")
        os.fsync(synced)
        assert "synced" in in_store(bucket), "fsync waits for the store, whatever the mount does on close"
        wait_for(lambda: mount.figures()["counters"]["unsaved"] == 0)
        files = [open(mount.path / name, "wb") for name in ("base", "conflict", "new")]  # noqa: SIM115 - closed below
        gate.shut()
        for file in files:
            file.write(b"second")
            file.close()
        kill_everything(mount)
        with suppress(OSError):  # there is nobody left to answer
            synced.close()
        gate.open()
        other = tmp_path / "other"
        other.write_bytes(b"somebody else's")
        with other.open("rb") as source, closing(bucket.open()) as store:
            store.write("conflict", source.fileno(), 15)
        with mounted(tmp_path, gated) as again:
            wait_for(lambda: "new" in in_store(bucket))
            wait_for(lambda: again.figures()["counters"]["unsaved"] == 0)
            assert (again.path / "base").read_bytes() == b"second"
            assert (again.path / "new").read_bytes() == b"second"
            assert (again.path / "synced").read_bytes() == b"synced"
            assert (again.path / "conflict").read_bytes() == b"somebody else's"
            (kept,) = (tmp_path / "state" / "conflicts").iterdir()
            assert kept.read_bytes() == b"second"
            wait_for(lambda: str(kept) in again.log())


@pytest.mark.parametrize("write_back", [False, True], ids=["through", "back"])
def test_a_close_that_came_after_the_front_was_asked_to_end(tmp_path: Path, write_back: bool) -> None:
    with mounted(tmp_path, local_store(tmp_path), write_back=write_back) as mount:
        for turn in range(3):
            with open(mount.path / "file", "wb") as file:
                file.write(stamped(turn, 50_000))
                os.kill(mount.figures()["front"], signal.SIGTERM if turn % 2 else signal.SIGKILL)
            assert (mount.path / "file").read_bytes() == stamped(turn, 50_000)
    assert (tmp_path / "store" / "file").read_bytes() == stamped(2, 50_000)


def test_a_truncated_file_is_uploaded_after_its_writer_closed_it_under_another_front(tmp_path: Path) -> None:
    with mounted(tmp_path, local_store(tmp_path)) as mount:
        (mount.path / "file").write_bytes(b"content")
        wait_for(lambda: mount.figures()["requests"].get("release", 0) >= 1)
        mount.kill_front()
        os.truncate(mount.path / "file", 4)
        assert (tmp_path / "store" / "file").read_bytes() == b"cont"


def test_a_dataset_is_read_through_deaths_and_never_written(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    for number in range(30):
        (tmp_path / "store" / f"f{number}").write_bytes(stamped(number, 1000 * number + 1))
    with mounted(tmp_path, store, dataset=True) as mount:
        assert mount.report.dataset
        for epoch in range(2):
            for number in range(30):
                with open(mount.path / f"f{number}", "rb") as file:
                    if number == 10 * epoch:
                        mount.kill_front()
                    assert file.read() == stamped(number, 1000 * number + 1)
        with pytest.raises(OSError, match="Read-only"):
            (mount.path / "new").touch()
        assert sorted(os.listdir(mount.path)) == sorted(f"f{number}" for number in range(30))
