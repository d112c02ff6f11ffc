"""Properties of a storage on the command line: ``-o k=v``, and a file for what others should not see.

Everybody on a machine can read everybody's command lines, so a secret belongs into the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from paddleflow.cli.values import pairs_of

Command = TypeVar("Command", bound=Callable[..., Any])


def property_options(command: Command) -> Command:
    """The options ``options`` and ``file``, for ``given_properties``."""
    from_file = click.option(
        "--properties",
        "file",
        type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
        metavar="FILE",
        help="A JSON object of properties in a file, or - for standard input: the place for secrets.",
    )
    one_by_one = click.option(
        "-o", "--option", "options", multiple=True, metavar="K=V", help="A property; may be repeated."
    )
    return one_by_one(from_file(command))


def given_properties(options: Sequence[str], file: Path | None) -> dict[str, str]:
    """Both together; what is given as an option wins."""
    return {**(_read(file) if file else {}), **pairs_of("-o", options)}


def _read(file: Path) -> dict[str, str]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        found = json.loads(text)
    except OSError as error:
        raise click.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="--properties") from error
    except ValueError as error:
        # Without the text of the error: it may show a piece of a secret.
        raise click.BadParameter(f"{file} is not JSON", param_hint="--properties") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise click.BadParameter(
            f'{file} should be one object of texts, e.g. {{"accessKey": "…", "secretKey": "…"}}',
            param_hint="--properties",
        )
    return found
