"""The list of NVIDIA's functions in `src/functions.h`, read for those who hold it against something."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SOURCES = Path(__file__).parent / "src"


class Status(StrEnum):
    """What we do about a function; functions.h says more."""

    HOOKED = "HOOKED"
    CALLED = "CALLED"
    NOT_YET = "NOT_YET"
    PASSED = "PASSED"


class Kind(StrEnum):
    """Why: the class of a function; functions.h says more."""

    ALLOCATES = "ALLOCATES"
    FREES = "FREES"
    QUERIES = "QUERIES"
    LAUNCHES = "LAUNCHES"
    RESOLVES = "RESOLVES"
    HOST = "HOST"
    ADDRESSES = "ADDRESSES"
    SHARES = "SHARES"
    COPIES = "COPIES"
    ORDERS = "ORDERS"
    BUILDS = "BUILDS"
    READS = "READS"
    SETS = "SETS"
    PRIVATE = "PRIVATE"


OURS = frozenset({Kind.ALLOCATES, Kind.FREES, Kind.QUERIES, Kind.LAUNCHES, Kind.RESOLVES})  # never PASSED

_LINE = re.compile(rf"^({'|'.join(Status)})\((\w+), (\w+)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Function:
    """One line of the list: an exported name, what we do about it and why."""

    name: str
    status: Status
    kind: Kind


def read(folder: Path = _SOURCES) -> dict[str, Function]:
    """Return the list by name.

    Raises:
        ValueError: a class that is none, a name that stands twice, or one that we should hook and let pass.
    """
    listed: dict[str, Function] = {}
    for function in _lines(folder):
        if function.name in listed:
            raise ValueError(f"{function.name} stands twice")
        if function.status is Status.PASSED and function.kind in OURS:
            raise ValueError(f"{function.name} is {function.kind}, so it cannot be PASSED: say NOT_YET")
        listed[function.name] = function
    return listed


def hooked(folder: Path = _SOURCES) -> set[str]:
    """Names of the functions that ours stand in for."""
    return {function.name for function in read(folder).values() if function.status is Status.HOOKED}


def _lines(folder: Path) -> Iterator[Function]:
    for file in sorted(folder.glob("functions*.h")):
        for status, name, kind in _LINE.findall(file.read_text()):
            yield Function(name, Status(status), Kind(kind))
