"""The query parameters of each list. Unknown parameters are refused: a misspelt filter must not show every row."""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from extender.admin.answers import label_selectors, paging
from extender.admin.answers.listed import gpus, nodes, placed_groups, pods, right_sizes, usage
from extender.admin.answers.listed.columns import Columns
from extender.admin.answers.listed.filters import MAX_VALUES, Name, RowFilter
from extender.admin.answers.paging import ListRequest
from extender.history.recording.events import EventKind
from vgpu.domain.identifiers import NO_NODE, NO_POD, UNNAMED_CARD, CardUuid, NodeName, PodUid

_NEXT_PAGE: Final = "for the next page: `nextCursor` of this one; all other parameters stay the same"

Names = Annotated[list[Name], Field(max_length=MAX_VALUES)]


class Query(BaseModel):
    """Parameters of one request."""

    model_config = ConfigDict(extra="forbid")


class RowQuery(Query):
    """What all rows are chosen by. `filters` are those of the columns, by the column's name."""

    filters: ClassVar[Mapping[str, RowFilter]] = {}

    sort: str = Field(
        "", max_length=256, description="fields, separated by commas; `-` before a field sorts descending",
        examples=["-freeMiB,node"],
    )  # fmt: skip
    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="the most rows of a page")
    fields: str = Field(
        "", max_length=512, description="the fields of each row, separated by commas (default: all)",
        examples=["name,node"],
    )  # fmt: skip

    def list_request(self) -> ListRequest:
        """Return the query in the terms of `paging`."""
        sort, fields, selector = _words(self.sort), _words(self.fields), getattr(self, "selector", "")
        cursor = getattr(self, "cursor", "")
        return ListRequest(self.wanted(), self.least(), sort, self.limit, cursor, fields, selector)

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        found: dict[str, tuple[str, ...]] = {}
        for column, chosen in self.filters.items():
            found |= chosen.wanted(column, getattr(self, chosen.parameter(column)[0]))
        return found

    def least(self) -> dict[str, int]:
        """Return the smallest number by field."""
        found: dict[str, int] = {}
        for column, chosen in self.filters.items():
            found |= chosen.least(column, getattr(self, chosen.parameter(column)[0]))
        return found


class ListQuery(RowQuery):
    """What lists with pages have."""

    cursor: str = Field("", max_length=paging.MAX_CURSOR, description=_NEXT_PAGE)


Q = TypeVar("Q", bound=RowQuery)


def filtered_by(columns: Columns[Any], only: Collection[str] | None = None) -> Callable[[type[Q]], type[Q]]:
    """Return a class decorator that adds the filters of columns to a query; `only` names columns, None for all."""
    filters = {
        column.name: column.filter for column in columns if column.filter and (only is None or column.name in only)
    }
    parameters = [found.parameter(name) for name, found in filters.items()]
    fields: dict[str, Any] = {name: (kind, field) for name, kind, field in parameters}

    def filtered(query: type[Q]) -> type[Q]:
        made: type[Q] = create_model(
            query.__name__, __base__=query, __module__=query.__module__, __doc__=query.__doc__, **fields
        )
        made.filters = filters
        return made

    return filtered


@filtered_by(nodes.COLUMNS)
class NodeQuery(ListQuery):
    """Filters of nodes."""


@filtered_by(gpus.COLUMNS)
class GpuQuery(ListQuery):
    """Filters of cards."""


class SelectedQuery(ListQuery):
    """What lists of pods have."""

    selector: str = Field(
        "", max_length=label_selectors.MAX_LENGTH, description="labels of pods: KEY=VALUE, KEY!=VALUE, KEY, !KEY",
        examples=["app=train"],
    )  # fmt: skip


@filtered_by(pods.COLUMNS, only={"namespace", "name"})
class PendingQuery(SelectedQuery):
    """Filters of waiting pods."""


@filtered_by(pods.COLUMNS)
class PodQuery(SelectedQuery):
    """Filters of pods."""


@filtered_by(placed_groups.COLUMNS)
class GroupQuery(ListQuery):
    """Filters of groups in space."""

    namespace: Names = Field([], description="namespaces of pods: groups with a member of them (default: all)")
    selector: str = Field(
        "", max_length=label_selectors.MAX_LENGTH, examples=["app=train"],
        description="labels of pods: groups with a member that has them; KEY=VALUE, KEY!=VALUE, KEY, !KEY",
    )  # fmt: skip


class ExplainQuery(Query):
    """Parameters of an explanation."""

    nodes: int = Field(50, ge=1, le=500, description="the most nodes in the answer; those that fit come first")


class EventQuery(Query):
    """Filters of an event stream."""

    kind: list[Annotated[str, Field(pattern="^(pod|gpu|node)$")]] = Field(
        [], max_length=3, description="pod, gpu, node (default: all that the caller may see)"
    )
    namespace: Names = Field([], description="namespaces of pods (default: all that the caller may see)")


_PERIOD: Final = "a time before now such as 7d, 24h, 30m, or RFC 3339"


def _report_order(default: str, example: str) -> Any:
    """Return the parameter that orders a report, with its default order in words."""
    return Field(
        "", max_length=256, examples=[example],
        description=f"fields, separated by commas; `-` before a field sorts descending (default: {default})",
    )  # fmt: skip


class PeriodQuery(Query):
    """A period of the history, and what it is about."""

    since: str = Field("", max_length=40, description=f"{_PERIOD} (default: 7d)", examples=["7d"])
    until: str = Field("", max_length=40, description=f"{_PERIOD} (default: now)")
    namespace: Names = Field([], description="namespaces (default: all that the caller may see)")


@filtered_by(usage.COLUMNS)
class UsageQuery(RowQuery, PeriodQuery):
    """What usage is grouped by, and which counts."""

    by: list[Annotated[str, Field(max_length=330)]] = Field(
        [], max_length=4, description="namespace (default), owner, card, model, node, day, label:KEY",
        examples=[["namespace", "day"]],
    )  # fmt: skip
    owner: str = Field(
        "", max_length=330, description="KIND/NAME of what created the pods", examples=["Deployment/train"]
    )
    node: Names = Field([], description="names of nodes")
    gpu: Names = Field([], description="UUIDs of cards")
    model: list[Annotated[str, Field(max_length=128)]] = Field([], max_length=MAX_VALUES, description="product names")
    label: list[Annotated[str, Field(max_length=400)]] = Field(
        [], max_length=16, description="KEY=VALUE, which the pods' labels must have"
    )
    sort: str = _report_order("those with the most usage first", "-cost")
    limit: int = Field(1000, ge=1, le=10_000, description="the most rows, the first ones in this order")


class SeriesQuery(Query):
    """The time that series cover."""

    since: str = Field("", max_length=40, description=f"{_PERIOD} (default: 24h)", examples=["24h"])
    until: str = Field("", max_length=40, description=f"{_PERIOD} (default: now)")


@filtered_by(right_sizes.COLUMNS)
class RightSizeQuery(RowQuery, PeriodQuery):
    """Of which containers what they used is compared with what they ask for."""

    owner: str = Field(
        "", max_length=330, description="KIND/NAME of what created the pods", examples=["Deployment/train"]
    )
    pod: str = Field("", max_length=253, description="name of a pod")
    label: list[Annotated[str, Field(max_length=400)]] = Field(
        [], max_length=16, description="KEY=VALUE, which the pods' labels must have"
    )
    worst: bool = Field(
        False, description="those first with the most GPU time that was guaranteed and not used; only those with any"
    )
    sort: str = _report_order("those with the most measured time first", "-unusedGpuSeconds")
    limit: int = Field(100, ge=1, le=1000, description="the most rows, the first ones in this order")


class HistoryQuery(PeriodQuery):
    """Which events are listed."""

    kind: list[EventKind] = Field([], max_length=16, description="kinds of events (default: all)")
    name: str = Field("", max_length=253, description="name of a pod")
    uid: PodUid = Field(NO_POD, max_length=64, description="UID of a pod")
    node: NodeName = Field(NO_NODE, max_length=253, description="name of a node")
    gpu: CardUuid = Field(UNNAMED_CARD, max_length=80, description="UUID of a card")
    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="the most events of a page")
    cursor: str = Field("", max_length=paging.MAX_CURSOR, description=_NEXT_PAGE)


class NoQuery(Query):
    """No parameters."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))
