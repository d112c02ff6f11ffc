"""The locked versions are those that pyproject.toml asks for, with hashes, and the same in every set."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9._-]+)==([^ ;]+)( ; [^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
SETS = {
    "client": [],
    "server": ["server", "postgres"],
    "demo": ["server", "demo"],
    "dev": ["dev"],
    "lowest": ["dev"],
}
"""File in ``requirements`` to extras."""


def pinned(name: str) -> dict[str, set[Version]]:
    """Several versions of one package are for several Pythons."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    pins: dict[str, set[Version]] = {}
    for found in PIN.finditer(text):
        pins.setdefault(canonicalize_name(found[1]), set()).add(Version(found[2]))
    rest = PIN.sub("", text)
    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []
    assert "://" not in text, "where packages come from is the installing machine's affair"
    return pins


def required(extras: list[str]) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    waiting = list(extras)
    while waiting:
        for line in project["optional-dependencies"][waiting.pop()]:
            requirement = Requirement(line)
            if requirement.name == "paddleflow":
                waiting += requirement.extras
            else:
                wanted.append(requirement)
    return wanted


@pytest.mark.parametrize("name", SETS)
def test_what_is_required_is_locked(name: str) -> None:
    pins = pinned(name)
    for requirement in required(SETS[name]):
        versions = pins.get(canonicalize_name(requirement.name))
        assert versions, f"requirements/{name}.txt lacks {requirement}: make update"
        assert all(requirement.specifier.contains(version) for version in versions), f"{requirement}: {versions}"


@pytest.mark.parametrize("name", ["client", "server", "demo"])
def test_users_get_what_is_tested(name: str) -> None:
    tested = pinned("dev")
    assert {package: versions for package, versions in pinned(name).items() if tested.get(package) != versions} == {}


def test_every_requirement_has_a_lower_bound() -> None:
    assert [str(it) for it in required(["dev"]) if not any(bound.operator == ">=" for bound in it.specifier)] == []
