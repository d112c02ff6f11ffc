"""``paddleflow completion``: prints what a shell needs to complete our commands."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """print a shell completion script

    \b
    bash:  eval "$(paddleflow completion bash)"
    zsh:   eval "$(paddleflow completion zsh)"
    fish:  paddleflow completion fish | source
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise click.UsageError(f"no completion for {shell}")
    root = ctx.find_root()
    click.echo(shell_class(root.command, {}, "paddleflow", "_PADDLEFLOW_COMPLETE").source())
