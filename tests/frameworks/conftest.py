"""Real frameworks on a real server. ``make test-frameworks`` runs these; without its variable they are not collected,
for they need gigabytes of wheels (``install.sh``) and minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.training import Training

collect_ignore_glob = [] if os.environ.get("PADDLEFLOW_TEST_FRAMEWORKS") else ["test_*.py"]

TOOLS = {"mpirun": "Open MPI (openmpi-bin)", "java": "a Java runtime (default-jre-headless)"}
_ran: dict[str, str] = {}


def frameworks_venv() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PADDLEFLOW_FRAMEWORKS_VENV") or cache / "paddleflow" / "frameworks")


def version_of(module: str, python: Path) -> str:
    """Empty when it cannot be had."""
    code = f"import importlib.metadata as m; print(m.version({module!r}))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip()


@pytest.fixture(scope="session")
def venv() -> Path:
    place = frameworks_venv()
    if not (place / "bin" / "python").exists():
        pytest.skip(f"no frameworks in {place}: run tests/frameworks/install.sh")
    return place


@pytest.fixture(autouse=True)
def needs(request: pytest.FixtureRequest, venv: Path) -> None:
    """Skips a test whose ``uses`` mark names something that is not there, and notes what is."""
    marker = request.node.get_closest_marker("uses")
    for name in marker.args if marker else ():
        if name in TOOLS:
            if shutil.which(name) is None:
                pytest.skip(f"{TOOLS[name]} is not installed")
            continue
        version = version_of(name, venv / "bin" / "python")
        if not version:
            pytest.skip(f"{name} is not installed in {venv}: run tests/frameworks/install.sh")
        _ran[name] = version


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory, venv: Path) -> Iterator[Training]:
    """One server for all, on two simulated nodes, whose jobs find the frameworks on their path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{os.environ['PATH']}:{venv / 'bin'}")
        running = Training(tmp_path_factory.mktemp("frameworks"), venv)
    yield running
    running.close()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "uses(*names): distributions and programs without which a test is skipped")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ran:
        terminalreporter.write_sep("-", "frameworks that ran")
        for name, version in sorted(_ran.items()):
            terminalreporter.write_line(f"{name} {version}")
