"""`vgpu completion`: the script that makes a shell complete commands, options and their values."""

from enum import StrEnum
from typing import Annotated, Final

import typer
from typer import completion

_PROGRAM: Final = "vgpu"
_VARIABLE: Final = "_VGPU_COMPLETE"


class Shell(StrEnum):
    """The shells that there are scripts for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def add(app: typer.Typer) -> None:
    """Add the command, and the answers to the scripts."""
    completion.completion_init()  # type: ignore[attr-defined]

    @app.command("completion")
    def completion_(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="the shell")]) -> None:
        """Print the completion script of a shell.

        In bash and zsh: source <(vgpu completion bash). In fish: vgpu completion fish | source.
        """
        typer.echo(script(shell))


def script(shell: Shell) -> str:
    """Return a shell's script."""
    made = completion.get_completion_script  # type: ignore[attr-defined]
    return str(made(prog_name=_PROGRAM, complete_var=_VARIABLE, shell=str(shell)))
