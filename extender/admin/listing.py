"""Filter, sort, page and choose fields of rows. Pages are found by the last row's sort key, so a page costs no state.

A cursor is opaque to clients: it holds the sort key of the last row, and a digest of the query that it belongs to.
"""

import base64
import hashlib
import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.admin.problems import AdminProblem, bad_field

Row = dict[str, Any]
T = TypeVar("T")
MAX_LIMIT: Final = 1000
MAX_CURSOR: Final = 4096


@dataclass(frozen=True, slots=True)
class Listing:
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
class Page:
    """Rows of a list, and the cursor of the next page; empty where there is none."""

    items: list[Row]
    next_cursor: str

    def as_json(self) -> Row:
        """Return the body of the answer."""
        return {"items": self.items, "nextCursor": self.next_cursor}


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object that lists have.

    Attributes:
        columns: what lists are filtered and sorted by: a function of the object for each name.
        identity: the columns that name an object.
        row: makes the row of an object; it is called for the objects of a page only.
        fields: the names in a row.
    """

    columns: Mapping[str, Callable[[T], Any]]
    identity: tuple[str, ...]
    row: Callable[[T], Row]
    fields: tuple[str, ...]


def page(objects: Iterable[T], listing: Listing, kind: Kind[T]) -> Page:
    """Return one page of the objects that pass the filters.

    Raises:
        AdminProblem: an unknown field, or a cursor of another query.
    """
    _check("sort", [name.removeprefix("-") for name in listing.sort], kind.columns)
    check_fields(listing.fields, kind.fields)
    key = _key(listing.sort, kind)
    after = _decode(listing) if listing.cursor else None
    matching = (each for each in objects if _matches(listing, each, kind))
    try:
        later = matching if after is None else (each for each in matching if key(each) > after)
        first = heapq.nsmallest(listing.limit + 1, later, key=key)
    except TypeError:
        if after is None:
            raise
        raise _bad_cursor() from None  # a cursor that no answer contained
    items, has_more = first[: listing.limit], len(first) > listing.limit
    cursor = _encode(listing, items[-1], kind) if has_more else ""
    return Page([chosen(kind.row(each), listing.fields) for each in items], cursor)


def check_fields(chosen_fields: Sequence[str], known: Collection[str]) -> None:
    """Raise AdminProblem where a chosen field is not known."""
    _check("fields", chosen_fields, known)


def _matches(listing: Listing, item: T, kind: Kind[T]) -> bool:
    return all(
        not values or _text(kind.columns[name](item)) in values for name, values in listing.wanted.items()
    ) and all(kind.columns[name](item) >= least for name, least in listing.least.items())


class _Descending:  # noqa: PLW1641 - never a key of a dictionary
    """A sort key that is larger where its value is smaller."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)


def _key(sort: Sequence[str], kind: Kind[T]) -> Callable[[T], tuple[Any, ...]]:
    named = [(name, kind.columns[name.removeprefix("-")]) for name in (*sort, *kind.identity)]
    return lambda item: tuple(_wrapped(name, column(item)) for name, column in named)


def _wrapped(name: str, value: Any) -> Any:
    return _Descending(value) if name.startswith("-") else value


def _check(where: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise bad_field(where, f"{name[:60]!r} is not one of {', '.join(sorted(known))}")


def _encode(listing: Listing, item: T, kind: Kind[T]) -> str:
    values = [kind.columns[name.removeprefix("-")](item) for name in (*listing.sort, *kind.identity)]
    return base64.urlsafe_b64encode(msgspec.json.encode([listing.digest, *values])).decode().rstrip("=")


def _decode(listing: Listing) -> tuple[Any, ...]:
    try:
        padded = listing.cursor + "=" * (-len(listing.cursor) % 4)
        digest, *values = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=list[Any])
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise _bad_cursor() from None
    if digest != listing.digest:
        raise _bad_cursor()
    names = (*listing.sort, *[""] * max(0, len(values) - len(listing.sort)))
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
