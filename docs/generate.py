"""Writes docs/reference from the code itself: settings, errors, command line, HTTP.

``python docs/generate.py`` rewrites the pages; ``--check`` only says which are out of date (a test does).
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click

from paddleflow import settings
from paddleflow.cli.main import cli
from paddleflow.domain.ids import DEFAULT_CLUSTER
from paddleflow.engine.logs import Logs
from paddleflow.engine.statistics import Statistics
from paddleflow.server.app import create_app
from paddleflow.server.deps import Services
from paddleflow.server.errors import STATUS_OF_CODE
from paddleflow.testing.platform import InMemoryPlatform

REFERENCE = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Written by docs/generate.py; change the code, not this page. -->\n"


def settings_page() -> str:
    lines = ["# Settings", NOTE, *inspect.cleandoc(settings.__doc__ or "").splitlines()[2:], ""]
    sections = [(item.name, item.default.__class__) for item in fields(settings.Settings)]
    for title, shape in [*sections, ("local.nodes[]", settings.NodeSettings)]:
        lines += [f"## `{title}`", ""]
        if shape is settings.NodeSettings:
            lines += [inspect.cleandoc(shape.__doc__ or ""), ""]
        lines += ["| setting | default | meaning |", "|---|---|---|"]
        about = dict(field_docs(shape))
        for item in fields(shape):
            default = "required" if item.default is MISSING and item.default_factory is MISSING else shown(item)
            lines.append(f"| `{item.name}` | {default} | {about.get(item.name, '')} |")
        lines.append("")
    return "\n".join(lines)


def shown(item: Any) -> str:
    value = item.default if item.default is not MISSING else item.default_factory()
    return f"`{value}`" if value not in ("", (), {}) else "none"


def field_docs(shape: type) -> Iterator[tuple[str, str]]:
    """The string under each field, which Python itself does not keep."""
    (node,) = ast.parse(inspect.getsource(shape)).body
    assert isinstance(node, ast.ClassDef)
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield str(ast.unparse(field.target)), " ".join(str(after.value.value).split())


def errors_page() -> str:
    lines = ["# Errors", NOTE, 'Every error answers `{"requestID", "code", "message"}`. The code is stable.', ""]
    lines += ["| code | HTTP status |", "|---|---|"]
    lines += [f"| `{code}` | {status} |" for code, status in sorted(STATUS_OF_CODE.items())]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    lines = ["# Command line", NOTE]
    for path, command in commands("paddleflow", cli):
        with click.Context(command, info_name=path, terminal_width=100) as context:
            lines += [f"## `{path}`", "", "```", command.get_help(context), "```", ""]
    return "\n".join(lines)


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(f"{path} {name}", child)


def http_page() -> str:
    lines = ["# HTTP", NOTE, "The whole document, with bodies and answers, is served at `/openapi.json`.", ""]
    lines += ["| method | path | who | what |", "|---|---|---|---|"]
    for path, operations in served_document()["paths"].items():
        for method, operation in operations.items():
            about = operation["summary"].splitlines()[0]
            lines.append(f"| {method.upper()} | `{path}` | {operation['x-access']} | {about} |")
    return "\n".join(lines) + "\n"


def served_document() -> dict[str, Any]:
    """The OpenAPI document of a platform in memory."""
    platform = InMemoryPlatform([])
    runtimes = {DEFAULT_CLUSTER: platform.runtime}
    services = Services(
        intake=platform.intake,
        reads=platform.reads,
        logs=Logs(platform.store, runtimes),
        statistics=Statistics(platform.store, platform.clock, runtimes),
        feed=platform.feed,
        pipelines=platform.desk,
        runs=platform.runs,
        storage=platform.storage,
        storage_reads=platform.storage_reads,
        mounts=platform.mounts,
        clock=platform.clock,
        marker_key=b"",
        version="",
        build={},
    )
    document: dict[str, Any] = create_app(services).state.document()
    return document


PAGES = {"settings.md": settings_page, "errors.md": errors_page, "cli.md": cli_page, "http.md": http_page}


def main() -> int:
    REFERENCE.mkdir(exist_ok=True)
    stale = [name for name, make in PAGES.items() if not is_fresh(name, make())]
    if "--check" in sys.argv:
        return 1 if stale else 0
    for name in stale:
        (REFERENCE / name).write_text(PAGES[name]())
    return 0


def is_fresh(name: str, text: str) -> bool:
    page = REFERENCE / name
    return page.exists() and page.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
