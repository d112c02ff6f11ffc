"""A group whose help shows its commands under headings, for groups of more commands than one reads at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click


class SectionedGroup(click.Group):
    """``sections`` names every command once, in the order they are shown."""

    def __init__(self, *args: object, sections: Mapping[str, Sequence[str]], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]  # click's own options, passed through
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        listed = [name for names in self.sections.values() for name in names]
        return [*listed, *(name for name in super().list_commands(ctx) if name not in listed)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - max(map(len, self.commands)) - 6
        for heading, names in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(room)) for name in names])
