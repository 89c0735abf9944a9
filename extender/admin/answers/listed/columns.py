"""A field of a row, declared once, and what is derived from it: rows, lists, filters and the OpenAPI schema."""

import operator
import types
import typing
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from extender.admin.answers.listed.filters import RowFilter
from extender.admin.answers.paging import ListKind, Row

R = TypeVar("R")
T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
NO_EXAMPLE: Final = object()


class AnswerSchema(BaseModel):
    """A schema; answers contain exactly these fields."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A field of rows.

    Attributes:
        name: in the JSON.
        type: of the value, for the OpenAPI document; `T | None` where it may be null.
        help: what the value says, for people; empty where the name says it.
        example: of a value, for the OpenAPI document, or NO_EXAMPLE.
        read: returns the value of an object.
        sortable: whether lists can be sorted by it; its value then depends on the object alone, since the order is kept
            while the object is unchanged.
        filter: the query parameter that chooses rows by it, which is for sortable columns only.
    """

    name: str
    type: Any
    help: str
    example: Any
    read: Callable[[R], Any]
    sortable: bool = False
    filter: RowFilter | None = None


Columns = Sequence[Column[R]]


def names(columns: Columns[R]) -> tuple[str, ...]:
    """Return the names of the fields."""
    return tuple(column.name for column in columns)


def row(columns: Columns[R], item: R, chosen: Collection[str] = ()) -> Row:
    """Return an object's row, of the chosen fields only; all where none are chosen."""
    return {column.name: column.read(item) for column in columns if not chosen or column.name in chosen}


def list_kind(
    columns: Columns[R],
    item: Callable[[T], R],
    identity: tuple[str, ...],
    *,
    name: Callable[[T], Hashable],
    same: Callable[[T, T], bool] = operator.is_,
    encoded: Callable[[T], bytes] | None = None,
) -> ListKind[T]:
    """Return how objects are listed; `item` returns what the columns read of an object. The rest is as in ListKind."""
    sortable = {column.name: _value(column, item) for column in columns if column.sortable}
    fields = names(columns)
    return ListKind(
        sortable, identity, lambda obj, chosen: row(columns, item(obj), chosen), fields, name, same, encoded
    )


def described_by(columns: Columns[R], *, may_lack: bool = True) -> Callable[[type[S]], type[S]]:
    """Return a class decorator that adds a field for each column to a schema.

    `may_lack`: rows may lack fields, because a request may choose them; the schema then requires none.
    """
    fields: dict[str, Any] = {column.name: (column.type, _field(column, may_lack=may_lack)) for column in columns}

    def described(schema: type[S]) -> type[S]:
        made: type[S] = create_model(
            schema.__name__, __base__=schema, __module__=schema.__module__, __doc__=schema.__doc__, **fields
        )
        return made

    return described


def _value(column: Column[R], item: Callable[[T], R]) -> Callable[[T], Any]:
    return lambda obj: column.read(item(obj))


def _field(column: Column[Any], *, may_lack: bool) -> Any:
    examples = [] if column.example is NO_EXAMPLE else [column.example]
    default = _empty(column.type) if may_lack or _may_be_null(column.type) else ...
    return Field(default, description=column.help or None, examples=examples or None)


def _empty(kind: Any) -> Any:
    """Return the empty value of a type: null where it may be null, else 0, false, an empty text or list."""
    if _may_be_null(kind):
        return None
    made = typing.get_origin(kind) or getattr(kind, "__supertype__", kind)
    return made()


def _may_be_null(kind: Any) -> bool:
    return isinstance(kind, types.UnionType) and types.NoneType in typing.get_args(kind)
