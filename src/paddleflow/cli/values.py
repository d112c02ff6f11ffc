"""How values are spelt on the command line: ``k=v,k=v``, ``k=v`` repeated, comma lists, NAME[=VALUE]."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click


class Pairs(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """``k=v,k=v`` as a dict. An empty value is kept: it removes a key where the server allows that."""

    name = "k=v,..."

    def convert(
        self, value: str | dict[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs: dict[str, str] = {}
        for item in filter(None, (part.strip() for part in value.split(","))):
            key, equals, text = item.partition("=")
            if not equals or not key:
                self.fail(f"{item!r} should be KEY=VALUE; several are separated by commas", param, ctx)
            pairs[key] = text
        return pairs


class Names(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """``a,b,c`` as a list."""

    name = "a,b,..."

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        return [part.strip() for part in value.split(",") if part.strip()]


PAIRS = Pairs()
NAMES = Names()


def pairs_of(option: str, items: Sequence[str]) -> dict[str, str]:
    """A repeated ``k=v`` option as a dict."""
    pairs: dict[str, str] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{item!r} should be KEY=VALUE", param_hint=option)
        pairs[key] = text
    return pairs


def environment_of(option: str, items: Sequence[str]) -> dict[str, str]:
    """A repeated ``NAME=VALUE`` option; ``NAME`` alone passes on the variable of this shell."""
    env: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not name:
            raise click.BadParameter(f"{item!r} should be NAME or NAME=VALUE", param_hint=option)
        if not equals:
            if name not in os.environ:
                raise click.BadParameter(f"{name} is not set here; give {name}=VALUE", param_hint=option)
            text = os.environ[name]
        env[name] = text
    return env
