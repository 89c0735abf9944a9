"""Reads a program's settings from its command line and environment; only `__main__` modules call `read`."""

import ipaddress
import sys
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ValidationError
from pydantic_settings import BaseSettings, CliApp

S = TypeVar("S", bound=BaseSettings)


def _checked(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not _is_address(host.strip("[]")) or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - TCP's ports
        raise ValueError(f"{text}: must be IP:PORT")
    return text


Address = Annotated[str, AfterValidator(_checked)]  # IP:PORT; no name, because the IP decides whether TLS is required


def _is_address(name: str) -> bool:
    """Whether this is an IP address and no DNS name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Listening(BaseSettings):
    """Settings of a program that serves at an address; each program has its own default."""

    listen: Address

    @property
    def host(self) -> str:
        """The address to listen on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port to listen on."""
        return int(self.listen.rpartition(":")[2])


def read(kind: type[S]) -> S:
    """Read the command line and the environment; name every wrong field on stderr and exit with status 2."""
    try:
        return CliApp.run(kind)
    except ValidationError as error:
        for problem in error.errors():
            print(f"{'.'.join(map(str, problem['loc'])) or 'settings'}: {problem['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
