"""Pods that wait for a node, as the list of them has them: a pod's row, and why it waits."""

from dataclasses import dataclass
from typing import Final

from extender.admin.answers.listed import columns, pods
from extender.admin.answers.listed.columns import NO_EXAMPLE, Column, described_by
from extender.admin.answers.listed.waits import DecisionSchema, NearestSchema, ReasonCountSchema
from extender.admin.answers.paging import Row


@dataclass(frozen=True, slots=True)
class ListedWait:
    """Since when a pod waits, and why: the answers of other parts, as rows."""

    since: Row
    why: Row


OF_WAIT: Final[tuple[Column[ListedWait], ...]] = (
    Column("waitsSince", str, "when kube-scheduler first found no node, else the pod's creation; empty: not known",
           "2026-11-22T11:40:00+00:00", lambda wait: wait.since["waitsSince"]),
    Column("lastDecision", DecisionSchema | None, "null: filter was not asked since the extender's start",
           NO_EXAMPLE, lambda wait: wait.since["lastDecision"]),
    Column("message", str, "why the pod waits, in one sentence", NO_EXAMPLE, lambda wait: wait.why["message"]),
    Column("reasons", list[ReasonCountSchema], "", NO_EXAMPLE, lambda wait: wait.why["reasons"]),
    Column("nearest", NearestSchema | None, "", NO_EXAMPLE, lambda wait: wait.why["nearest"]),
)  # fmt: skip
FIELDS: Final = (*columns.names(pods.COLUMNS), *columns.names(OF_WAIT))


@described_by(OF_WAIT)
class PendingPodSchema(pods.PodSchema):
    """A pod that waits for a node, and why."""
