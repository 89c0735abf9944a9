"""What groups of pods used and cost, as reports have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extender.admin.answers.listed import columns
from extender.admin.answers.listed.columns import AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import MOST_SECONDS, AtLeast
from extender.admin.answers.paging import ListKind
from extender.history.reporting.reports import UsageGroup, UsageRow

LABEL: Final = "label:"  # before the key of a label that usage is grouped by


@dataclass(frozen=True, slots=True)
class ListedUsage:
    """The usage of one group, with the dimensions by which it is one."""

    groups: Sequence[UsageGroup]
    row: UsageRow

    @property
    def group(self) -> dict[str, str]:
        """The value of each dimension, by its name."""
        names = (LABEL + group.label if group.label else str(group.dimension) for group in self.groups)
        return dict(zip(names, self.row.group, strict=True))


COLUMNS: Final[tuple[Column[ListedUsage], ...]] = (
    Column("group", dict[str, str], "the value of each dimension", {"namespace": "default"}, lambda item: item.group),
    Column("shareSeconds", float, "card-seconds; a share counts as the larger of its part of memory and of time",
           3600.0, lambda item: item.row.share_seconds, sortable=True,
           filter=AtLeast("minShareSeconds", "the least card-seconds", MOST_SECONDS)),
    Column("gpuSecondsAsked", float, "guaranteed GPU time", 1080.0, lambda item: item.row.gpu_seconds_asked,
           sortable=True),
    Column("gpuSecondsUsed", float | None, "measured GPU time; null where none was measured", 612.5,
           lambda item: item.row.gpu_seconds_used, sortable=True),
    Column("mibHours", float, "", 8192.0, lambda item: item.row.mib_hours, sortable=True),
    Column("waitingSeconds", float, "of pods that were bound in the period, together", 4.2,
           lambda item: item.row.waiting_seconds, sortable=True),
    Column("bound", int, "pods that were bound in the period", 3, lambda item: item.row.bound, sortable=True),
    Column("cost", float | None, "by the prices file; null where a model has no price", 2.49,
           lambda item: item.row.cost, sortable=True),
)  # fmt: skip


def kind(groups: Sequence[UsageGroup]) -> ListKind[UsageRow]:
    """Return how usage by these groups is listed."""
    return columns.list_kind(COLUMNS, lambda row: ListedUsage(groups, row), (), name=lambda row: row.group)


@described_by(COLUMNS)
class UsageItemSchema(AnswerSchema):
    """Usage of one group."""
