"""``paddleflow user``."""

from __future__ import annotations

import sys

import click

from paddleflow.cli.config import change_password
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list


@click.group()
def user() -> None:
    """manage users"""


@user.command("list")
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed users.")
@click.pass_obj
def list_users(invocation: Invocation, maxsize: int) -> None:
    """list users"""
    _, users = invocation.client.list_user(maxsize)
    rows = [[one.name, one.create_time] for one in users]
    show_list(invocation.output, ["name", "create time"], rows, nothing="no user found")


@user.command()
@click.argument("username")
@click.argument("password", required=False)
@click.pass_obj
def add(invocation: Invocation, username: str, password: str | None) -> None:
    """add a user

    Without PASSWORD it is asked for (or read from standard input), which keeps it out of the process list.
    """
    invocation.client.add_user(username, password or _ask_password())
    click.echo(f"user[{username}] add success")


@user.command("set")
@click.argument("username")
@click.argument("password", required=False)
@click.pass_obj
def set_password(invocation: Invocation, username: str, password: str | None) -> None:
    """set a user's password

    Without PASSWORD it is asked for (or read from standard input), which keeps it out of the process list.
    """
    chosen = password or _ask_password()
    invocation.client.update_password(username, chosen)
    click.echo(f"user[{username}] update success")
    if username == invocation.config.user:
        change_password(invocation.config.path, chosen)
        click.echo(f"{invocation.config.path} has the new password", err=True)


@user.command()
@click.argument("username")
@click.pass_obj
def delete(invocation: Invocation, username: str) -> None:
    """delete a user"""
    invocation.client.del_user(username)
    click.echo(f"user[{username}] delete success")


def _ask_password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("password", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\n")
