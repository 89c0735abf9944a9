"""The format of a result: one run of a benchmark script as JSON. `encode` writes it, `decode` reads and checks it."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from benchmarks.record.machine import HostMachine

VERSION = 1
MOST_BYTES = 4 << 20
_TEXT = re.compile(r"[^\x00-\x1f\x7f]{0,1000}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")  # may stand in a file's name
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class ResultError(Exception):
    """A text is not a result; the message names the field and what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One figure.

    Attributes:
        id: stable name, such as `cost.launch`; tables and comparisons refer to it.
        value: the median of the rounds; None when the measurement failed.
        unit: of the value: "ratio", "%", "ms", "faults" and so on.
        native: the value without the limiter in the same run; None when it was not measured.
        worst: the round furthest from the goal; None when there was one round.
        rounds: the value of each round; empty when the script keeps no rounds.
        goal: in words; empty = no goal.
        fault: how the goal was missed, or why the measurement failed; empty = no fault.
        details: further figures by name.
    """

    id: str
    value: float | None
    unit: str
    native: float | None = None
    worst: float | None = None
    rounds: tuple[float, ...] = ()
    goal: str = ""
    fault: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of a script.

    Attributes:
        script: module below `benchmarks`.
        arguments: of the command line.
        machine: where it ran.
        commit: of the tree, with "-dirty" behind it when the tree was edited.
        date: when the run began, in UTC.
        simulated: whether the cards were simulated.
        fingerprints: of the source folders on which the figures depend (see `fingerprint`).
        rows: the figures.
    """

    script: str
    arguments: tuple[str, ...]
    machine: HostMachine
    commit: str
    date: str
    simulated: bool
    fingerprints: Mapping[str, str]
    rows: tuple[ResultRow, ...] = ()

    @property
    def is_publishable(self) -> bool:
        """Whether tables may use it: measured on real cards, and not shortened by --quick."""
        return not self.simulated and "--quick" not in self.arguments

    @property
    def faults(self) -> int:
        """Return the number of rows with a fault."""
        return sum(bool(row.fault) for row in self.rows)


def slug(*names: str) -> str:
    """Return the row id of these names: `slug("tenants", "30 and 60")` is `tenants.30-and-60`."""
    return ".".join(re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-") for name in names)


def in_space(row: ResultRow) -> ResultRow:
    """Return the row of what was measured as a member of a group in space: its id begins so."""
    return replace(row, id=f"space.{row.id}")


def encode(result: Result) -> str:
    """Return the JSON text. Raises ValueError when a figure is not a finite number."""
    return json.dumps({"version": VERSION, **asdict(result)}, indent=1, allow_nan=False) + "\n"


def decode(text: str) -> Result:
    """Return the result of a JSON text. Raises ResultError."""
    if len(text) > MOST_BYTES:
        raise ResultError(f"it has {len(text)} characters; at most {MOST_BYTES} are read")
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"it is not JSON: {error}") from error
    return of_document(document)


def of_document(document: Any) -> Result:
    """Return the result of a decoded JSON object. Raises ResultError."""
    values = dict(_object(document, "the document"))
    if (version := values.pop("version", None)) != VERSION:
        raise ResultError(f"version: must be {VERSION}, is {version!r}")
    machine = _build(HostMachine, _object(values.get("machine"), "machine"), "machine")
    rows = tuple(_row(row, f"rows[{place}]") for place, row in enumerate(_list(values.get("rows"), "rows")))
    found: Result = _build(Result, values | {"machine": machine, "rows": rows}, "the document")
    return found


def _row(value: Any, where: str) -> ResultRow:
    row: ResultRow = _build(ResultRow, _object(value, where), where)
    if not re.fullmatch(r"[a-z0-9_.-]{1,200}", row.id):
        raise ResultError(f"{where}.id: must be small letters, digits and '.-_', is {row.id!r}")
    return row


def _build(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    known = {entry.name for entry in fields(kind)}
    if unknown := values.keys() - known:
        raise ResultError(f"{where}: unknown field {min(unknown)!r}")
    checked = {name: _checked(name, value, where) for name, value in values.items()}
    try:
        return kind(**checked)
    except TypeError as error:  # a field is missing
        raise ResultError(f"{where}: {error}") from error


def _checked(name: str, value: Any, where: str) -> Any:
    check: Callable[[Any, str], Any] = _CHECKS.get(name, _text)
    return check(value, f"{where}.{name}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise ResultError(f"{where}: must be a text of one line and at most 1000 characters")
    return value


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ResultError(f"{where}: must be letters, digits and '._+-', is {value!r:.50}")
    return value


def _date(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ResultError(f"{where}: must be a time such as 2026-11-22T14:05:00Z, is {value!r:.50}")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultError(f"{where}: must be a number, is {value!r:.50}")
    return value


def _number_or_none(value: Any, where: str) -> float | None:
    return None if value is None else _number(value, where)


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ResultError(f"{where}: must be true or false, is {value!r:.50}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ResultError(f"{where}: must be a list, is {value!r:.50}")
    return list(value)


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ResultError(f"{where}: must be an object, is {value!r:.50}")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_text(item, where) for item in _list(value, where))


def _numbers(value: Any, where: str) -> tuple[float, ...]:
    return tuple(_number(item, where) for item in _list(value, where))


def _text_by_text(value: Any, where: str) -> dict[str, str]:
    return {_text(name, where): _text(text, f"{where}.{name}") for name, text in _object(value, where).items()}


def _as_is(value: Any, _where: str) -> Any:
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "arguments": _texts,
    "commit": _word,
    "cores": _number,
    "date": _date,
    "details": _object,
    "fingerprints": _text_by_text,
    "machine": _as_is,  # is built already
    "native": _number_or_none,
    "rounds": _numbers,
    "rows": _as_is,  # are built already
    "script": _word,
    "simulated": _boolean,
    "value": _number_or_none,
    "worst": _number_or_none,
}
