"""Reads a program's settings from its command line and environment; only `__main__` modules call `read`."""

import sys
from collections.abc import Collection, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ValidationError
from pydantic_settings import BaseSettings, CliApp

from vgpu.adapters import listening
from vgpu.domain import suggestion

S = TypeVar("S", bound=BaseSettings)


def _checked(text: str) -> str:
    try:
        listening.parse(text)
    except ValueError:
        raise ValueError(f"{text}: must be IP:PORT, such as 127.0.0.1:80 or [::1]:80") from None
    return text


Address = Annotated[str, AfterValidator(_checked)]  # IP:PORT, as `listening.parse` reads it


class Listening(BaseSettings):
    """Settings of a program that serves at an address; each program has its own default."""

    listen: Address

    @property
    def host(self) -> str:
        """The address to listen on."""
        return listening.parse(self.listen).host

    @property
    def port(self) -> int:
        """The port to listen on."""
        return listening.parse(self.listen).port


def unknown_option(arguments: Sequence[str], known: Collection[str]) -> str:
    """Return what is wrong with the first option that does not exist; empty for none."""
    for argument in arguments:
        option = argument.partition("=")[0]
        if option.startswith("--") and option not in (*known, "--help"):
            return f"{option}: there is no such option; {suggestion.instead_of(option, known)}"
    return ""


def _options(kind: type[BaseSettings]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in kind.model_fields]


def read(kind: type[S]) -> S:
    """Read the command line and the environment; name every wrong field on stderr and exit with status 2."""
    if unknown := unknown_option(sys.argv[1:], _options(kind)):
        print(unknown, file=sys.stderr)  # noqa: T201
        sys.exit(2)
    try:
        return CliApp.run(kind)
    except ValidationError as error:
        for problem in error.errors():
            print(f"{'.'.join(map(str, problem['loc'])) or 'settings'}: {problem['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
