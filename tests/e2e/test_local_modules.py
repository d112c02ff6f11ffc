"""A script with modules of its own, run with caching on a real server, changed, and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow import Client
from paddleflow.sdk.run_views import JobInfo, RunInfo
from tests.e2e.reader import Reader, serving
from tests.e2e.servers import RUN_DEADLINE_S

pytestmark = pytest.mark.timeout(600)

TRAIN = """
from __future__ import annotations

import sys

from paddleflow.pipeline import CacheOptions, FSOptions, Input, MainFS, Output, Pipeline, step

from shop import prices


@step
def price(found: Output) -> None:
    found.write_text(str(prices.price("apple")))


@step
def total(found: Input) -> float:
    from shop.models import Model

    return Model(int(found.read_text())).total()


def build() -> None:
    total(price().found)


if __name__ == "__main__":
    options = {"cache_options": CacheOptions(enable=True), "fs_options": FSOptions(main_fs=MainFS(sys.argv[1]))}
    print(Pipeline(name="shop", **options)(build)().run()[1])
"""
MODELS = """
class Model:
    def __init__(self, price):
        self.price = price

    def total(self):
        return 10.0 * self.price
"""


class Shop:
    """A folder with a script and a package, beside two filesystems that have neither."""

    def __init__(self, place: Path, reader: Reader, client: Client) -> None:
        self.client = client
        self._place = place
        self._reader = reader
        for name in ("one", "other"):
            (place / name).mkdir()
            client.add_fs(name, f"local://{place / name}")
        (place / "project" / "shop").mkdir(parents=True)
        (place / "project" / "train.py").write_text(TRAIN)
        self.write("__init__", "")
        self.write("prices", "from . import table\n\n\ndef price(what):\n    return table.PRICES[what]\n")
        self.write("table", "PRICES = {'apple': 1}\n")
        self.write("models", MODELS)

    def write(self, name: str, text: str) -> None:
        (self._place / "project" / "shop" / f"{name}.py").write_text(text)

    def run(self, filesystem: str = "one") -> RunInfo:
        # From elsewhere: the directory is not what makes the modules found.
        done = self._reader.start(["python", "project/train.py", filesystem], self._place)
        assert done.returncode == 0, done.stdout
        _, run = self.client.wait_run(done.stdout.strip(), timeout=RUN_DEADLINE_S)
        return run

    def result(self, run: RunInfo, filesystem: str = "one") -> str:
        path: str = step(run, "total").artifacts["output"]["result"]
        return (self._place / filesystem / path).read_text()

    def log(self, run: RunInfo) -> str:
        return self._reader.start(["paddleflow", "log", "run", run.run_id], self._place).stdout


def step(run: RunInfo, name: str) -> JobInfo:
    (view,) = run.runtime[name]
    assert isinstance(view, JobInfo)
    return view


def statuses(run: RunInfo) -> list[str]:
    views = [step(run, name) for name in ("price", "total")]
    return ["reused" if view.cache_run_id else view.status for view in views]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    place = tmp_path_factory.mktemp("shop")
    with serving(place / "state") as server, Client("127.0.0.1", "root", "paddleflow", server.port) as client:
        client.login("root", "paddleflow")
        yield Shop(place, Reader(place / "home", server), client)


def test_a_changed_module_runs_its_steps_again(shop: Shop) -> None:
    first = shop.run()
    assert (statuses(first), shop.result(first)) == (["succeeded", "succeeded"], "10.0")
    assert statuses(shop.run()) == ["reused", "reused"]

    shop.write("table", "PRICES = {'apple': 2}\n")
    second = shop.run()
    assert (statuses(second), shop.result(second)) == (["succeeded", "succeeded"], "20.0")

    shop.write("models", MODELS.replace("10.0", "100.0"))
    third = shop.run()
    assert (statuses(third), shop.result(third)) == (["reused", "succeeded"], "200.0")

    there = shop.run("other")
    assert (statuses(there), shop.result(there, "other")) == (["succeeded", "succeeded"], "200.0")

    shop.write("models", MODELS.replace("10.0 *", "10.0 * None *"))
    failed = shop.run()
    assert statuses(failed) == ["reused", "failed"]
    log = shop.log(failed)
    assert 'shop/models.py", line 7, in total\n' in log
    assert "return 10.0 * None * self.price" in log
