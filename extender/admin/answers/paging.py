"""Filter, sort, page and choose fields of rows. Pages are found by the last row's sort key, so a page costs no state.

A cursor is opaque to clients: it holds the sort key of the last row, and a digest of the query that it belongs to.
"""

import base64
import hashlib
import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.admin.problems import AdminProblem, bad_field

Row = dict[str, Any]
Key = tuple[Any, ...]
T = TypeVar("T")
MAX_LIMIT: Final = 1000
MAX_CURSOR: Final = 4096


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What a client asks of a list.

    Attributes:
        wanted: by field, the values of which the row must have one; an empty tuple accepts every row.
        least: by field, the smallest number.
        sort: field names; `-` before a name sorts descending.
        limit: the most rows of a page.
        cursor: the end of the page before, or empty.
        fields: the fields of each row; empty for all.
        selector: of labels; the caller applies it.
    """

    wanted: Mapping[str, tuple[str, ...]]
    least: Mapping[str, int]
    sort: tuple[str, ...]
    limit: int
    cursor: str = ""
    fields: tuple[str, ...] = ()
    selector: str = ""

    @property
    def digest(self) -> str:
        """Digest of what decides which rows there are and in which order."""
        said = (sorted(self.wanted.items()), sorted(self.least.items()), self.sort, self.selector)
        return hashlib.blake2b(msgspec.json.encode(said), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows of a list, encoded or not, and the cursor of the next page; empty where there is none."""

    items: Sequence[Row | msgspec.Raw]
    next_cursor: str

    def as_json(self, stale_since: str) -> Row:
        """Return the body of the answer; `stale_since` is since when the rows are old, empty where they are not."""
        return {"items": self.items, "nextCursor": self.next_cursor, "staleSince": stale_since}


@dataclass(frozen=True, slots=True)
class ListKind(Generic[T]):
    """A kind of object that lists have.

    Attributes:
        columns: what lists are filtered and sorted by: a function of the object for each name.
        identity: the columns that name an object.
        row: makes the row of an object, of the chosen fields, or of all where none are chosen: a field that is not
            chosen costs nothing. It is called for the objects of a page only.
        fields: the names in a row.
        name: identifies an object in all snapshots.
        same: whether two versions of one object have equal columns and rows.
        encoded: returns the encoded row of an object where rows are cached.
    """

    columns: Mapping[str, Callable[[T], Any]]
    identity: tuple[str, ...]
    row: Callable[[T, Collection[str]], Row]
    fields: tuple[str, ...]
    name: Callable[[T], Hashable]
    same: Callable[[T, T], bool] = operator.is_
    encoded: Callable[[T], bytes] | None = None


def check(asked: ListRequest, kind: ListKind[Any]) -> None:
    """Raise AdminProblem where a field is not known."""
    _check("sort", [name.removeprefix("-") for name in asked.sort], kind.columns)
    check_fields(asked.fields, kind.fields)


def page(later: Iterable[T], asked: ListRequest, kind: ListKind[T]) -> RowPage:
    """Return the first page of ordered objects: those after the cursor's."""
    first = list(islice(later, asked.limit + 1))
    items, has_more = first[: asked.limit], len(first) > asked.limit
    cursor = _encode(asked, items[-1], kind) if has_more else ""
    return RowPage([_row(item, asked, kind) for item in items], cursor)


def best(items: Iterable[T], asked: ListRequest, kind: ListKind[T]) -> tuple[list[Row], int]:
    """Return the first rows of a list that has no pages, and how many more there are.

    Where no order is asked for, the objects stay in theirs. Raises AdminProblem where a field is not known.
    """
    check(asked, kind)
    found = [item for item in items if matches(asked, item, kind)]
    if asked.sort:
        found.sort(key=sort_key(asked, kind))
    return [kind.row(item, asked.fields) for item in found[: asked.limit]], max(0, len(found) - asked.limit)


def matches(asked: ListRequest, item: T, kind: ListKind[T]) -> bool:
    """Whether an object passes the filters."""
    return all(
        not values or _text(kind.columns[name](item)) in values for name, values in asked.wanted.items()
    ) and all(kind.columns[name](item) >= least for name, least in asked.least.items())


def sort_key(asked: ListRequest, kind: ListKind[T]) -> Callable[[T], Key]:
    """Return the function that makes an object's sort key."""
    named = [(name, kind.columns[name.removeprefix("-")]) for name in (*asked.sort, *kind.identity)]
    return lambda item: tuple(_wrapped(name, column(item)) for name, column in named)


def after_cursor(keys: Sequence[T], asked: ListRequest, key: Callable[[T], Key]) -> int:
    """Return where the page begins in ordered objects. Raises AdminProblem for a cursor of another query."""
    if not asked.cursor:
        return 0
    try:
        return bisect_right(keys, _decode(asked), key=key)
    except TypeError:
        raise _bad_cursor() from None  # a cursor that no answer contained


def check_fields(chosen_fields: Sequence[str], known: Collection[str]) -> None:
    """Raise AdminProblem where a chosen field is not known."""
    _check("fields", chosen_fields, known)


def _row(item: T, asked: ListRequest, kind: ListKind[T]) -> Row | msgspec.Raw:
    if kind.encoded is None:
        return kind.row(item, asked.fields)
    encoded = kind.encoded(item)
    return chosen(msgspec.json.decode(encoded), asked.fields) if asked.fields else msgspec.Raw(encoded)


class _Descending:  # noqa: PLW1641 - never a key of a dictionary
    """A sort key that is larger where its value is smaller."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)


def _wrapped(name: str, value: Any) -> Any:
    if value is None:
        value = -math.inf  # numbers that are not known are smaller than others
    if not name.startswith("-"):
        return value
    return -value if isinstance(value, int | float) else _Descending(value)  # numbers are compared without Python code


def _check(where: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise bad_field(where, f"{name[:60]!r} is not one of {', '.join(sorted(known))}")


def _encode(asked: ListRequest, item: T, kind: ListKind[T]) -> str:
    values = [kind.columns[name.removeprefix("-")](item) for name in (*asked.sort, *kind.identity)]
    return base64.urlsafe_b64encode(msgspec.json.encode([asked.digest, *values])).decode().rstrip("=")


def _decode(asked: ListRequest) -> tuple[Any, ...]:
    try:
        padded = asked.cursor + "=" * (-len(asked.cursor) % 4)
        digest, *values = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=list[Any])
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise _bad_cursor() from None
    if digest != asked.digest:
        raise _bad_cursor()
    names = (*asked.sort, *[""] * max(0, len(values) - len(asked.sort)))
    return tuple(_wrapped(name, value) for name, value in zip(names, values, strict=False))


def _bad_cursor() -> AdminProblem:
    return bad_field("cursor", "is no cursor of this query; take nextCursor of the page before, with the same query")


def chosen(row: Row, fields: Sequence[str]) -> Row:
    """Return the chosen fields of a row; the whole row where none are chosen."""
    return {name: row[name] for name in fields} if fields else row


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
