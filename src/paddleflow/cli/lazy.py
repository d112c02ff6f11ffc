"""A group that knows the names and one-line helps of its commands without importing them.

``paddleflow --help`` and every command would otherwise pay for the imports of all the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click


class LazyCommand(NamedTuple):
    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """A click group over a table of commands to be imported when called."""

    def __init__(self, *args: object, lazy: Mapping[str, LazyCommand], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]  # click's own options, passed through
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._lazy.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        command = getattr(import_module(entry.module), entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._lazy.items()])
