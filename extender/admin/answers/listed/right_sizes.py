"""What containers asked for, used, and should ask for, as reports have it."""

from typing import Final

from extender.admin.answers.listed import columns
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import MOST_SECONDS, AtLeast, Flag, OneOf
from extender.admin.answers.paging import ListKind
from extender.history.reporting.reports import RightSizeRow
from vgpu.domain.asks import right_size
from vgpu.domain.identifiers import ContainerName, Namespace

COLUMNS: Final[tuple[Column[RightSizeRow], ...]] = (
    Column("namespace", Namespace, "", "default", lambda row: row.namespace, sortable=True),
    Column("owner", str, "KIND/NAME of what created the pods", "Deployment/train", lambda row: row.owner,
           sortable=True),
    Column("container", ContainerName, "", "main", lambda row: row.container, sortable=True,
           filter=OneOf("names of containers")),
    Column("pods", int, "pods that were measured", 3, lambda row: row.pods, sortable=True),
    Column("measuredSeconds", float, "of all pods together", 604_800.0, lambda row: row.measured_s, sortable=True),
    Column("wholeCard", bool, "the container holds whole cards", NO_EXAMPLE, lambda row: row.asked.whole,
           sortable=True, filter=Flag("whether the containers hold whole cards")),
    Column("askedCores", int | None, "percent of a card's time; null: none guaranteed", 60,
           lambda row: row.asked.cores, sortable=True),
    Column("meanCores", float, "percent of a card's time that was used", 11.4,
           lambda row: round(row.found.mean_cores, 1), sortable=True),
    Column("p95Cores", float | None, "percent that 95 % of the minutes do not exceed; null: less than a minute was "
           "measured", 22.3, lambda row: None if row.found.p95_cores is None else round(row.found.p95_cores, 1),
           sortable=True),
    Column("unusedGpuSeconds", float, "seconds of a whole card that were guaranteed and not used", 293_933.0,
           lambda row: round(row.unused_s, 3), sortable=True,
           filter=AtLeast("minUnusedGpuSeconds", "the least seconds of a whole card that were guaranteed and not "
                          "used", MOST_SECONDS)),
    Column("askedMiB", int, "", 16_384, lambda row: row.asked.memory_mib, sortable=True),
    Column("peakMiB", int, "the most memory in use", 5120, lambda row: row.found.peak_mib, sortable=True),
    Column("enoughMeasured", bool, "false: less than an hour, so that nothing is advised", NO_EXAMPLE,
           lambda row: row.found.is_enough, sortable=True, filter=Flag("whether an hour or more was measured")),
    Column("adviceCores", int | None, "percent to ask for; null: as it is", 30, lambda row: row.found.cores),
    Column("adviceMiB", int | None, "MiB to ask for; null: as it is", 5888, lambda row: row.found.memory_mib),
    Column("advice", list[str], "for people",
           ["ask for less time: vgpu.io/gpu-cores: 30 (asked 60 %, used 22 % at p95)"],
           lambda row: list(right_size.sentences(row.asked, row.found))),
)  # fmt: skip
KIND: Final[ListKind[RightSizeRow]] = columns.list_kind(
    COLUMNS,
    lambda row: row,
    ("namespace", "owner", "container"),
    name=lambda row: (row.namespace, row.owner, row.container),
)


@described_by(COLUMNS)
class RightSizeItemSchema(AnswerSchema):
    """What a container of a workload asks for on one card, what it used, and what it should ask for."""
