"""The ways in which a query parameter chooses rows by the value of a column. See `columns`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Final, Protocol

from pydantic import Field

MAX_VALUES: Final = 100
# Looser than vgpu.domain.object_names: UUIDs of cards are such names too, and a name that no object has finds nothing.
NAME: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME, max_length=253)]
MOST_MIB: Final = 1 << 40
MOST_SECONDS: Final = 1 << 40


class RowFilter(Protocol):
    """A query parameter that chooses rows by the value of one column."""

    def parameter(self, column: str) -> tuple[str, Any, Any]:
        """Return its name, its type and its pydantic field."""

    def wanted(self, column: str, given: Any) -> Mapping[str, tuple[str, ...]]:
        """Return the accepted values by column, of the parameter's value; empty where values are not listed."""

    def least(self, column: str, given: Any) -> Mapping[str, int]:
        """Return the smallest number by column; empty where there is none."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of several. `kind` is the type of each, `most` how many a request may name."""

    help: str
    kind: Any = Name
    most: int = MAX_VALUES

    def parameter(self, column: str) -> tuple[str, Any, Any]:
        """Return the parameter, which has the column's name."""
        return column, GenericAlias(list, (self.kind,)), Field([], max_length=self.most, description=self.help)

    def wanted(self, column: str, given: Any) -> Mapping[str, tuple[str, ...]]:
        """Return the values."""
        return {column: tuple(given)}

    def least(self, column: str, given: Any) -> Mapping[str, int]:  # noqa: ARG002 - as RowFilter has it
        """Return nothing."""
        return {}


@dataclass(frozen=True, slots=True)
class Flag:
    """The value is true, or false, as the parameter says."""

    help: str

    def parameter(self, column: str) -> tuple[str, Any, Any]:
        """Return the parameter, which has the column's name."""
        return column, bool | None, Field(None, description=self.help)

    def wanted(self, column: str, given: Any) -> Mapping[str, tuple[str, ...]]:
        """Return the value; no values where the parameter is not given, so that all are accepted."""
        return {column: () if given is None else (str(given).lower(),)}

    def least(self, column: str, given: Any) -> Mapping[str, int]:  # noqa: ARG002 - as RowFilter has it
        """Return nothing."""
        return {}


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The value is a number that is not smaller. `name` is the parameter's, `most` its largest value."""

    name: str
    help: str
    most: int = MOST_MIB

    def parameter(self, column: str) -> tuple[str, Any, Any]:  # noqa: ARG002 - as RowFilter has it
        """Return the parameter."""
        return self.name, int, Field(0, ge=0, le=self.most, description=self.help)

    def wanted(self, column: str, given: Any) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - as RowFilter has it
        """Return nothing."""
        return {}

    def least(self, column: str, given: Any) -> Mapping[str, int]:
        """Return the number."""
        return {column: given}
