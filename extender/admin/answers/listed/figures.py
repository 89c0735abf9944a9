"""Columns that several kinds of rows have: what is used, and how old that is."""

from collections.abc import Callable
from typing import TypeVar

from extender.admin.answers.listed.columns import Column
from extender.admin.answers.paging import Row

R = TypeVar("R")
UUID = "GPU-8f3c2a10-1111-2222-3333-444455556666"  # of examples


def used(read: Callable[[R], Row]) -> tuple[Column[R], ...]:
    """Return the columns of what is used; `read` returns them as a row."""
    return (
        Column("usedMiB", int | None, "in use, as the node last reported, about a minute ago; null: not reported",
               5120, lambda item: read(item)["usedMiB"]),
        Column("usedCores", int | None, "percent of the time of a card that was used in that minute", 22,
               lambda item: read(item)["usedCores"]),
        Column("usedAt", str, "when the node measured that, of several containers the oldest; empty: not reported",
               "2026-11-22T12:00:00+00:00", lambda item: read(item)["usedAt"]),
    )  # fmt: skip


def stale_since(read: Callable[[R], str]) -> Column[R]:
    """Return the column of since when a row's node is silent."""
    text = (
        "when the node's device plugin was last heard of, if it is silent: figures are of then; empty: they are fresh"
    )
    return Column("staleSince", str, text, "", read)
