"""The query parameters of each list. Unknown parameters are refused: a misspelt filter must not show every row."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from extender.admin.answers import label_selectors, paging
from extender.admin.answers.paging import ListRequest
from extender.history.recording.events import EventKind
from vgpu.domain.identifiers import NO_NODE, NO_POD, UNNAMED_CARD, CardUuid, NodeName, PodUid

# Looser than vgpu.domain.object_names: UUIDs of cards are such names too, and a name that no object has finds nothing.
NAME: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$"
MAX_VALUES: Final = 100

Name = Annotated[str, Field(pattern=NAME, max_length=253)]
Names = Annotated[list[Name], Field(max_length=MAX_VALUES)]


class Query(BaseModel):
    """Parameters of one request."""

    model_config = ConfigDict(extra="forbid")


class ListQuery(Query):
    """What every list has."""

    sort: str = Field(
        "", max_length=256, description="fields, separated by commas; `-` before a field sorts descending",
        examples=["-freeMiB,node"],
    )  # fmt: skip
    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="the most rows of a page")
    cursor: str = Field(
        "", max_length=paging.MAX_CURSOR, description="`nextCursor` of the page before, with an otherwise equal query"
    )
    fields: str = Field(
        "", max_length=512, description="the fields of each row, separated by commas (default: all)",
        examples=["name,node"],
    )  # fmt: skip

    def list_request(self) -> ListRequest:
        """Return the query in the terms of `paging`."""
        sort, fields, selector = _words(self.sort), _words(self.fields), getattr(self, "selector", "")
        return ListRequest(self.wanted(), self.least(), sort, self.limit, self.cursor, fields, selector)

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        return {}

    def least(self) -> dict[str, int]:
        """Return the smallest number by field."""
        return {}


class NodeQuery(ListQuery):
    """Filters of nodes."""

    name: Names = Field([], description="names of nodes")
    usable: bool | None = Field(None, description="whether pods can be placed on the node")
    min_free_mib: int = Field(0, ge=0, le=1 << 40, alias="minFreeMiB", description="the least free MiB over its cards")

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        return {"name": tuple(self.name), "usable": _flag(self.usable)}

    def least(self) -> dict[str, int]:
        """Return the smallest number by field."""
        return {"freeMiB": self.min_free_mib}


class GpuQuery(ListQuery):
    """Filters of cards."""

    node: Names = Field([], description="names of nodes")
    model: list[str] = Field([], max_length=MAX_VALUES, description="product names, as NVML writes them")
    healthy: bool | None = Field(None, description="whether the card can be given to new containers")
    cordoned: bool | None = Field(None, description="whether an administrator has cordoned the card")
    min_free_mib: int = Field(0, ge=0, le=1 << 40, alias="minFreeMiB", description="the least free MiB")
    min_free_cores: int = Field(0, ge=0, le=100, alias="minFreeCores", description="the least free percent of time")

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        return {
            "node": tuple(self.node),
            "model": tuple(self.model),
            "healthy": _flag(self.healthy),
            "cordoned": _flag(self.cordoned),
        }

    def least(self) -> dict[str, int]:
        """Return the smallest number by field."""
        return {"freeMiB": self.min_free_mib, "freeCores": self.min_free_cores}


class PendingQuery(ListQuery):
    """Filters of waiting pods."""

    namespace: Names = Field([], description="namespaces")
    name: Names = Field([], description="names of pods")
    selector: str = Field(
        "", max_length=label_selectors.MAX_LENGTH, description="labels of pods: KEY=VALUE, KEY!=VALUE, KEY, !KEY",
        examples=["app=train"],
    )  # fmt: skip

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        return {"namespace": tuple(self.namespace), "name": tuple(self.name)}


class PodQuery(PendingQuery):
    """Filters of pods."""

    node: Names = Field([], description="names of nodes")
    status: list[Annotated[str, Field(pattern="^(Pending|Starting|Running|Terminating|Ended)$")]] = Field(
        [], max_length=5, description="where the pods are in their life"
    )

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the accepted values by field."""
        return {**super().wanted(), "node": tuple(self.node), "status": tuple(self.status)}


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


class PeriodQuery(Query):
    """A period of the history, and what it is about."""

    since: str = Field("", max_length=40, description=f"{_PERIOD} (default: 7d)", examples=["7d"])
    until: str = Field("", max_length=40, description=f"{_PERIOD} (default: now)")
    namespace: Names = Field([], description="namespaces (default: all that the caller may see)")


class UsageQuery(PeriodQuery):
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
    limit: int = Field(1000, ge=1, le=10_000, description="the most rows, those with the most usage")


class RightSizeQuery(PeriodQuery):
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
    limit: int = Field(100, ge=1, le=1000, description="the most rows, those with the most measured time")


class HistoryQuery(PeriodQuery):
    """Which events are listed."""

    kind: list[EventKind] = Field([], max_length=16, description="kinds of events (default: all)")
    name: str = Field("", max_length=253, description="name of a pod")
    uid: PodUid = Field(NO_POD, max_length=64, description="UID of a pod")
    node: NodeName = Field(NO_NODE, max_length=253, description="name of a node")
    gpu: CardUuid = Field(UNNAMED_CARD, max_length=80, description="UUID of a card")
    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="the most events of a page")
    cursor: str = Field("", max_length=paging.MAX_CURSOR, description="`nextCursor` of the page before")


class NoQuery(Query):
    """No parameters."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _flag(value: bool | None) -> tuple[str, ...]:
    return () if value is None else (str(value).lower(),)
