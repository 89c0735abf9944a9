"""The list of NVIDIA's functions in `src/driver/functions.h`, for checks that compare it with headers and libraries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SOURCES = Path(__file__).parents[1] / "src" / "driver" / "functions"


class HookStatus(StrEnum):
    """What the limiter does about a function; functions.h explains each."""

    HOOKED = "HOOKED"
    CALLED = "CALLED"
    UNWRAPPED = "UNWRAPPED"
    PASSED = "PASSED"


class FunctionKind(StrEnum):
    """The class of a function, which is the reason for its status; functions.h explains each."""

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


OURS = frozenset(
    {FunctionKind.ALLOCATES, FunctionKind.FREES, FunctionKind.QUERIES, FunctionKind.LAUNCHES, FunctionKind.RESOLVES}
)  # never PASSED

_LINE = re.compile(rf"^({'|'.join(HookStatus)})\((\w+), (\w+)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Function:
    """One line of the list: an exported name, its status and its class."""

    name: str
    status: HookStatus
    kind: FunctionKind


def read(folder: Path = _SOURCES) -> dict[str, Function]:
    """Return the list by name.

    Raises:
        ValueError: an unknown class, a name that is listed twice, or a function that must be hooked and is PASSED.
    """
    listed: dict[str, Function] = {}
    for function in _lines(folder):
        if function.name in listed:
            raise ValueError(f"{function.name} is listed twice")
        if function.status is HookStatus.PASSED and function.kind in OURS:
            raise ValueError(f"{function.name} is {function.kind}, so it cannot be PASSED: write UNWRAPPED")
        listed[function.name] = function
    return listed


def hooked() -> set[str]:
    """Return the names of the hooked functions."""
    return {function.name for function in read().values() if function.status is HookStatus.HOOKED}


def _lines(folder: Path) -> Iterator[Function]:
    for file in sorted(folder.glob("*.h")):
        for status, name, kind in _LINE.findall(file.read_text()):
            yield Function(name, HookStatus(status), FunctionKind(kind))
