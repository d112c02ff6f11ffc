"""The house keeps itself in order: sizes, docstrings, versions, and nothing of one machine in what everybody gets."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddleflow

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "paddleflow"
TESTS = ROOT / "tests"

FILE_LINES = 500
FUNCTION_LINES = 60

LONG_FILES: dict[str, str] = {}
"""Path below src/paddleflow, and the reason why splitting it would be worse."""
LONG_FUNCTIONS: dict[str, str] = {}
"""``path::name``, and the reason why splitting it would be worse."""


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def kept_files() -> list[Path]:
    """What version control holds or would take: new files count before they are added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of kept files")
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def long_functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield node.name, lines


def imports_of(tree: ast.AST) -> set[str]:
    """The top-level modules that a file imports, wherever in it."""
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in found}


def names_of(module: str, tree: ast.AST) -> Iterator[str]:
    """What a file uses of a module: ``module.name``, called or not, or imported from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module:
            yield f"{module}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == module:
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_files_stay_within_their_budget() -> None:
    sizes = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in source_files()}
    too_long = {name: lines for name, lines in sizes.items() if lines > FILE_LINES}
    assert too_long.keys() - LONG_FILES.keys() == set(), too_long
    assert LONG_FILES.keys() - too_long.keys() == set(), "these files became short: take them off the list"


def test_functions_stay_within_their_budget() -> None:
    too_long = {
        f"{path.relative_to(PACKAGE)}::{name}": lines
        for path in source_files()
        for name, lines in long_functions(ast.parse(path.read_text()))
    }
    assert too_long.keys() - LONG_FUNCTIONS.keys() == set(), too_long
    assert LONG_FUNCTIONS.keys() - too_long.keys() == set(), "these functions became short: take them off the list"


def test_the_budget_notices_a_long_function() -> None:
    body = "\n".join("    x = 1" for _ in range(FUNCTION_LINES))
    assert list(long_functions(ast.parse(f"async def long():\n{body}\n"))) == [("long", FUNCTION_LINES + 1)]
    assert not list(long_functions(ast.parse("def short():\n    x = 1\n")))


@pytest.mark.parametrize("init", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_every_package_says_what_it_is(init: Path) -> None:
    assert ast.get_docstring(ast.parse(init.read_text())), f"{init} has no docstring"


def test_every_folder_with_code_is_a_package() -> None:
    """But for migrations, which Alembic runs as files."""
    folders = {path.parent for path in source_files() if "migrations" not in path.parts}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_no_paths_of_one_machine() -> None:
    """Where somebody's checkout or home happens to lie is nobody else's business."""
    private = (f"{ROOT}/", f"{Path.home()}/")
    found = []
    for path in kept_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # a picture or another binary file
        if any(place in text for place in private):
            found.append(str(path.relative_to(ROOT)))
    assert not found


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_seed_of_a_program_is_its_own(path: Path) -> None:
    """The SDK lives in training programs that seed ``random``: who draws from it there changes their results."""
    own = {"random.Random", "random.SystemRandom"}
    assert not [name for name in names_of("random", ast.parse(path.read_text())) if name not in own]


def test_a_bare_reference_to_the_program_s_random_is_noticed() -> None:
    assert list(names_of("random", ast.parse("import random\nretry(jitter=random.random)"))) == ["random.random"]
    assert list(names_of("random", ast.parse("from random import uniform"))) == ["random.uniform"]


def test_tests_wait_in_one_place() -> None:
    """A sleep hopes that the machine is fast enough; a port that was let go may be somebody else's by now."""
    found = []
    for path in TESTS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        if path != TESTS / "waiting.py" and "time.sleep" in names_of("time", tree):
            found.append(f"{path.relative_to(ROOT)} sleeps: use tests.waiting.wait_for")
        if any(isinstance(node, ast.FunctionDef) and node.name.strip("_") == "free_port" for node in ast.walk(tree)):
            found.append(f"{path.relative_to(ROOT)} looks for a free port: use tests.ports.reserve_port")
    assert not found


def test_unit_tests_start_no_process() -> None:
    starters = {"subprocess", "multiprocessing"}
    found = [
        str(path.relative_to(ROOT))
        for path in (TESTS / "unit").rglob("*.py")
        if path != Path(__file__) and starters & imports_of(ast.parse(path.read_text()))
    ]
    assert not found, "tests that start programs have folders of their own"


def test_hypothesis_has_one_profile() -> None:
    """tests/conftest.py: how long an example may take, and whether examples are always the same, is said there."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in TESTS.rglob("*.py")
        if path != TESTS / "conftest.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("settings")
        if {"deadline", "derandomize", "database"} & {keyword.arg for keyword in node.keywords}
    ]
    assert not found


def test_the_changelog_knows_the_version() -> None:
    """The newest release in the changelog is this version, or this version is still to be released."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\](.*)$", changelog, flags=re.MULTILINE)
    assert headings, "the changelog has no headings"
    assert headings[0][0] == "Unreleased", "the first heading is for what comes next"
    named = re.search(r"^The next release is (\S+)\.$", changelog, flags=re.MULTILINE)
    released = [name for name, _ in headings[1:]]
    expected = released[0] if named is None and released else named.group(1) if named else None
    assert paddleflow.__version__ == expected
