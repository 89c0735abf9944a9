"""Whether `vgpu` accepts the words of a documented command, by its own parser; nothing is run."""

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import typer

import limiter
from vgpu.cli import app

_OPTION = re.compile(r"(--?[a-z][\w-]*)")
_FIXED = datetime(2026, 11, 22, tzinfo=UTC)


def problem(words: tuple[str, ...], *, whole: bool) -> str | None:
    """What is wrong with the words after `vgpu`.

    `whole`: they are a complete command; otherwise they only mention a command and some of its options.
    """
    if not words or words[0].startswith("-"):
        return _problem_of_options(program(), words)
    command = program().commands.get(words[0])
    if command is None:
        return f"there is no command `vgpu {words[0]}`"
    return _refusal(command, words) if whole else _problem_of_options(command, words[1:])


@cache
def program() -> Any:
    """The command line program, which knows its commands by name."""
    return typer.main.get_command(app.build({}, limiter.this_host(), Path("/none"), lambda: _FIXED))


def options() -> set[str]:
    """Every option of every command."""
    return set().union(*map(_options, (program(), *program().commands.values())))


def _options(command: Any) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help", "-h"}


def _problem_of_options(command: Any, words: tuple[str, ...]) -> str | None:
    given = [match[1] for word in _before_dashes(words) if (match := _OPTION.match(word))]
    unknown = [option for option in given if option not in _options(command)]
    return f"`{command.name}` has no option {unknown[0]}" if unknown else None


def _before_dashes(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[: words.index("--")] if "--" in words else words


def _refusal(command: Any, words: tuple[str, ...]) -> str | None:
    try:
        command.make_context(words[0], list(words[1:]))
    except Exception as error:  # noqa: BLE001 # a usage error: typer has no public name for its own copy of click
        return f"`vgpu {words[0]}` refuses: {error.format_message() if hasattr(error, 'format_message') else error}"
    return None
