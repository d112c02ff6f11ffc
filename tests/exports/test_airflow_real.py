"""Exported pipelines run by a real Airflow 3 and by a real server of ours, on a directory each: afterwards the two
directories hold the same files with the same contents, and the runs have ended alike.

``make test-airflow`` runs this; it needs an interpreter with Airflow, which ``make_airflow.py`` builds.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.exports.airflow import airflow_dag
from tests.e2e.servers import Server
from tests.exports.pipelines import ALL, plan_of

PYTHON = os.environ.get("PADDLEFLOW_AIRFLOW_PYTHON", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON, reason="PADDLEFLOW_AIRFLOW_PYTHON names no interpreter with Airflow"),
]


class Airflow:
    def __init__(self, home: Path) -> None:
        self.dags = home / "dags"
        self.dags.mkdir(parents=True)
        self._environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "NO_COLOR": "1",
        }

    def call(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PYTHON, "-m", "airflow", *words],
            env={**self._environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    airflow = Airflow(tmp_path_factory.mktemp("airflow"))
    made = airflow.call("db", "migrate")
    assert made.returncode == 0, made.stdout
    return airflow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "state").wait_ready()
    yield server
    server.stop()


def run_here(server: Server, directory: Path, name: str) -> str:
    """How the run ended."""
    status, answer = server.call("POST", "/fs", {"name": f"fs{name}", "url": f"local://{directory}"})
    assert status in (200, 201), answer
    text = ALL[name].replace("name: work", f"name: fs{name}")
    status, answer = server.call("POST", "/run", {"runYamlRaw": base64.b64encode(text.encode()).decode()})
    assert status == 201, answer

    def ended() -> str:
        _, run = server.call("GET", f"/run/{answer['runID']}")
        return run["status"] if run["status"] in ("succeeded", "failed", "terminated") else ""

    return str(server.wait_for(ended, f"the end of {name}", deadline_s=120))


def contents(directory: Path) -> dict[str, str]:
    """What a run has left, by path; the id of the run is different in each engine."""
    return {
        re.sub(r"^\.pipeline/[^/]+", ".pipeline/RUN", str(path.relative_to(directory))): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ALL)
def test_airflow_does_the_same(name: str, airflow: Airflow, server: Server, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    plan = plan_of(ALL[name])
    (airflow.dags / f"{name}.py").write_text(airflow_dag(plan))
    told = airflow.call("dags", "test", plan.name, PADDLEFLOW_ARTIFACTS=str(theirs))
    status = run_here(server, ours, name)
    assert (told.returncode == 0) == (status == "succeeded"), told.stdout[-4000:]
    found = contents(theirs)
    assert found == contents(ours)
    assert "never.txt" not in found
    if plan.post_process and name != "late":
        assert found["over.txt"] == "it is over\n"


def test_airflow_keeps_the_files_as_its_own(airflow: Airflow) -> None:
    """The scheduler stores what it has parsed; what it cannot store it would never run."""
    for name, text in ALL.items():
        (airflow.dags / f"{name}.py").write_text(airflow_dag(plan_of(text)))
    told = airflow.call("dags", "reserialize")
    assert told.returncode == 0, told.stdout
    listed = airflow.call("dags", "list", "--output", "plain")
    names = {line.split()[0] for line in listed.stdout.splitlines() if line.strip()}
    assert {plan_of(text).name for text in ALL.values()} <= names, listed.stdout
    errors = airflow.call("dags", "list-import-errors")
    assert "No data found" in errors.stdout, errors.stdout


def test_without_a_directory_it_says_what_to_set(airflow: Airflow) -> None:
    (airflow.dags / "everything.py").write_text(airflow_dag(plan_of(ALL["everything"])))
    told = airflow.call("dags", "test", "everything", PADDLEFLOW_ARTIFACTS="")
    assert told.returncode != 0
    assert "set PADDLEFLOW_ARTIFACTS" in told.stdout
