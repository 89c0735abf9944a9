"""Reads a program's settings from its command line and environment; only `__main__` modules call `read`."""

import difflib
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, ValidationError
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict

from vgpu.adapters import listening
from vgpu.domain import suggestion

S = TypeVar("S", bound=BaseSettings)
_MISSPELT: Final = 0.9  # of difflib's ratio: a variable whose prefix is misspelt, and none of another part
# What the kubelet sets for each Service of the pod's namespace, such as VGPU_WEBHOOK_PORT_443_TCP for vgpu-webhook:
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_SERVICE: Final = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)


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


def of_program(program: str, env_prefix: str) -> SettingsConfigDict:
    """Return how the settings of a program are named: flags `--state-dir`, and variables that begin with `env_prefix`.

    What is not a setting is refused. A field with aliases, of other variables, keeps its own name beside them.
    """
    return SettingsConfigDict(
        env_prefix=env_prefix,
        cli_prog_name=program,
        cli_kebab_case=True,
        cli_hide_none_type=True,
        extra="forbid",
        populate_by_name=True,
    )


def unknown_option(arguments: Sequence[str], known: Collection[str]) -> str:
    """Return what is wrong with the first option that does not exist; empty for none."""
    for argument in arguments:
        option = argument.partition("=")[0]
        if option.startswith("--") and option not in (*known, "--help"):
            return f"{option}: there is no such option; {suggestion.instead_of(option, known)}"
    return ""


def unknown_variable(variables: Iterable[str], prefix: str, known: Collection[str]) -> str:
    """Return what is wrong with the first variable that looks like a setting and is none; empty for none.

    Variables that begin with `prefix` look like settings, and those that one of `known` resembles closely. Those that
    the kubelet sets for Services do not.
    """
    for variable in sorted(name.upper() for name in variables):
        if variable in known or _OF_SERVICE.fullmatch(variable):
            continue
        if variable.startswith(prefix) or difflib.get_close_matches(variable, known, n=1, cutoff=_MISSPELT):
            return f"{variable}: there is no such setting; {suggestion.instead_of(variable, known)}"
    return ""


def _options(kind: type[BaseSettings]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in kind.model_fields]


def _unknown(kind: type[BaseSettings], arguments: Sequence[str], environment: Iterable[str]) -> str:
    prefix = kind.model_config.get("env_prefix", "")
    variables = [f"{prefix}{name}".upper() for name in kind.model_fields]
    return unknown_option(arguments, _options(kind)) or unknown_variable(environment, prefix, variables)


def read(kind: type[S], environment: Mapping[str, str]) -> S:
    """Read the command line and the environment; name every wrong field on stderr and exit with status 2.

    `environment` is that of this process. In it, as on the command line, a setting that does not exist is refused.
    """
    if unknown := _unknown(kind, sys.argv[1:], environment):
        print(unknown, file=sys.stderr)  # noqa: T201
        sys.exit(2)
    try:
        return CliApp.run(kind)
    except ValidationError as error:
        for problem in error.errors():
            print(f"{'.'.join(map(str, problem['loc'])) or 'settings'}: {problem['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
