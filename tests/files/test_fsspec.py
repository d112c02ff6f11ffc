"""fsspec's own suite on ours, and what users of it do: URLs, pickles, processes."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import fsspec
import pytest
from fsspec.tests import abstract

from paddleflow.files import Files
from paddleflow.files.spec import PaddleFlowFileSystem
from tests.files.conftest import Storage, stored
from tests.waiting import DEADLINE_S


class Ours(abstract.AbstractFixtures):
    @pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow)])
    def fs(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PaddleFlowFileSystem]:
        with stored(request.param, request, tmp_path) as storage:
            made = PaddleFlowFileSystem(files=storage.files(), skip_instance_cache=True)
            yield made
            made.close()

    @pytest.fixture
    def fs_path(self) -> str:
        return "data/work"

    @pytest.fixture
    def fs_join(self) -> object:
        return lambda *parts: "/".join(parts)


class TestCopy(Ours, abstract.AbstractCopyTests):
    pass


class TestGet(Ours, abstract.AbstractGetTests):
    pass


class TestPut(Ours, abstract.AbstractPutTests):
    pass


class TestPipe(Ours, abstract.AbstractPipeTests):
    pass


class TestOpen(Ours, abstract.AbstractOpenTests):
    pass


@pytest.fixture
def fs(files: Files) -> PaddleFlowFileSystem:
    return PaddleFlowFileSystem(files=files, skip_instance_cache=True)


def test_urls() -> None:
    strip = PaddleFlowFileSystem._strip_protocol
    assert strip("paddleflow://data/a/b.csv") == "data/a/b.csv"
    assert strip("paddleflow://data/") == "data"
    assert strip("/data/a") == "data/a"
    assert strip(["paddleflow://data/a", "data/b"]) == ["data/a", "data/b"]


def test_fsspec_finds_it_by_its_protocol() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    named = project["project"]["entry-points"]["fsspec.specs"]["paddleflow"]
    module, _, name = named.partition(":")
    assert getattr(import_module(module), name) is PaddleFlowFileSystem


def test_the_basics(fs: PaddleFlowFileSystem) -> None:
    fs.pipe("data/a/b", b"0123456789")
    assert fs.cat("data/a/b") == b"0123456789"
    assert fs.cat_file("data/a/b", 2, 5) == b"234"
    assert fs.cat_file("data/a/b", -3) == b"789"
    assert fs.cat_file("data/a/b", 3, -3) == b"3456"
    assert fs.cat_ranges(["data/a/b", "data/a/b"], [0, 5], [2, 7]) == [b"01", b"56"]
    assert fs.head("data/a/b", 3) == b"012"
    assert fs.tail("data/a/b", 3) == b"789"
    assert fs.size("data/a/b") == 10
    assert fs.isfile("data/a/b")
    assert fs.isdir("data/a")
    assert not fs.exists("data/none")
    assert fs.ls("data", detail=False) == ["data/a"]
    assert fs.find("data") == ["data/a/b"]
    assert fs.glob("data/*/b") == ["data/a/b"]
    assert fs.du("data") == 10
    first = fs.ukey("data/a/b")
    with fs.open("data/a/b", "w") as file:
        file.write("other")
    assert fs.ukey("data/a/b") != first
    assert fs.modified("data/a/b").year > 2020
    fs.mv("data/a", "data/c", recursive=True)
    assert fs.find("data") == ["data/c/b"]
    fs.rm("data/c", recursive=True)
    assert fs.find("data") == []
    with pytest.raises(FileNotFoundError):
        fs.info("data/none")
    with pytest.raises(FileNotFoundError, match="paddleflow://FSNAME/path"):
        fs.open("paddleflow://", "wb")


def test_transactions(fs: PaddleFlowFileSystem) -> None:
    with fs.transaction:
        with fs.open("data/f", "wb") as file:
            file.write(b"1")
        assert not fs.exists("data/f")
    assert fs.cat("data/f") == b"1"
    with pytest.raises(ZeroDivisionError), fs.transaction:
        with fs.open("data/f", "wb") as file:
            file.write(b"2")
        raise ZeroDivisionError
    assert fs.cat("data/f") == b"1"


def test_get_tells_its_progress(fs: PaddleFlowFileSystem, tmp_path: Path) -> None:
    fs.pipe("data/f", b"x" * 1000)
    callback = fsspec.callbacks.Callback()
    fs.get_file("data/f", str(tmp_path / "f"), callback=callback)
    assert (callback.size, callback.value) == (1000, 1000)
    buffer = io.BytesIO()
    fs.get_file("data/f", buffer)
    assert buffer.getvalue() == b"x" * 1000


def test_a_pickled_filesystem_holds_no_password(tmp_path: Path) -> None:
    config = tmp_path / "paddleflow.ini"
    config.write_text("[user]\nname = root\npassword = hunter2\n[server]\npaddleflow_server_host = 127.0.0.1\n")
    made = PaddleFlowFileSystem(config=str(config), files=object(), skip_instance_cache=True)
    made.storage_options.pop("files")
    assert b"hunter2" not in pickle.dumps(made)


def read_in_child(fs: PaddleFlowFileSystem, path: str, start: int) -> bytes:
    with fs.open(path) as file:
        file.seek(start)
        data: bytes = file.read(1000)
        return data


def test_forked_readers_open_their_own(on_local: Storage) -> None:
    """As the workers of a DataLoader: the parent has read already, with all its threads, when they are forked."""
    files = on_local.files()
    content = os.urandom(6 << 20)
    with files.open("data", "/f", "wb") as file:
        file.write(content)
    files.evict("data")
    fs = PaddleFlowFileSystem(files=files, skip_instance_cache=True)
    held = files.open("data", "/f")
    assert held.read(10) == content[:10]
    context = multiprocessing.get_context("fork")
    ends = []
    with ExitStack() as started:
        for index in range(3):
            ours, theirs = context.Pipe()

            def work(end=theirs, index=index) -> None:  # type: ignore[no-untyped-def]
                held.seek(index * 1000)
                end.send((read_in_child(fs, "data/f", index * (1 << 20)), held.read(1000), len(on_local.opened)))

            process = context.Process(target=work)
            process.start()
            started.callback(process.kill)
            ends.append((index, ours, process))
        for index, ours, process in ends:
            assert ours.poll(DEADLINE_S), "the child never answered"
            fresh, from_held, opened = ours.recv()
            assert fresh == content[index << 20 :][:1000]
            assert from_held == content[index * 1000 :][:1000]
            assert opened == 2, "it opened its own"
            process.join()
            assert process.exitcode == 0
    assert held.read() == content[10:]
    held.close()
    files.close()
