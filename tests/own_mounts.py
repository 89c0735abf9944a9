"""Runs a program in a mount namespace of its own, as root."""

from collections.abc import Sequence
from pathlib import Path

SHARED = 'mount --bind "$1" "$1" && mount --make-shared "$1"'  # as a node's state directory is to its containers


def command(mount: str, path: Path, program: Sequence[str]) -> list[str]:
    """Return the command that runs the program after `mount`, a command of the shell in which `$1` is the path."""
    within = ("unshare", "--mount", "--propagation", "private")
    return [*within, "sh", "-c", f'{mount} && shift && exec "$@"', "sh", str(path), *program]
