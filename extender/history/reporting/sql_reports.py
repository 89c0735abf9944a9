"""Answers the questions of `reports` from the database."""

from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Engine

from extender.history import folder
from extender.history.reporting import event_list, prices, right_sizes, series, usage_report
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import (
    CardSeries,
    EntryPage,
    HistoryFilters,
    PodSeries,
    RightSizes,
    UsageFilters,
    UsageGroup,
    UsageRow,
)
from extender.history.storage import database, progress
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName

ALL_USAGE = UsageFilters()
ALL_EVENTS = HistoryFilters()


class SqlReports:
    """Reads the history, in any number of threads. `now_ms` is the wall clock, in Unix milliseconds."""

    def __init__(self, engine: Engine, prices: Prices, now_ms: Callable[[], int]) -> None:
        self._engine = engine
        self._prices = prices
        self._now_ms = now_ms

    @property
    def currency(self) -> str:
        """The currency of costs, as `Reports.currency` says."""
        return self._prices.currency

    def stored_until_ms(self) -> int:
        """Return until when the history is stored, as `Reports.stored_until_ms` says."""
        with database.reading(self._engine) as connection:
            return progress.proved_ms(connection, self._now_ms())

    def stored_since_ms(self) -> int:
        """Return when the history began, as `Reports.stored_since_ms` says."""
        with database.reading(self._engine) as connection:
            return progress.began_ms(connection, self._now_ms())

    def usage(
        self, by: Sequence[UsageGroup], since_ms: int, until_ms: int, filters: UsageFilters = ALL_USAGE
    ) -> list[UsageRow]:
        """Return usage, as `Reports.usage` says."""
        until_ms = min(until_ms, self._now_ms())
        with database.reading(self._engine) as connection:
            return usage_report.report(connection, by, max(0, since_ms), until_ms, filters, self._prices)

    def right_sizes(self, since_ms: int, until_ms: int, filters: UsageFilters = ALL_USAGE, pod: str = "") -> RightSizes:
        """Return what containers used beside what they asked for, as `Reports.right_sizes` says."""
        with database.reading(self._engine) as connection:
            return right_sizes.report(connection, since_ms, until_ms, filters, pod)

    def card_series(
        self,
        node: NodeName,
        gpu: CardUuid,
        since_ms: int,
        until_ms: int,
        namespaces: frozenset[Namespace] | None = None,
    ) -> CardSeries:
        """Return the figures of a card, as `Reports.card_series` says."""
        with database.reading(self._engine) as connection:
            return series.of_card(connection, node, gpu, since_ms, until_ms, namespaces)

    def pod_series(self, namespace: Namespace, name: str, since_ms: int, until_ms: int) -> PodSeries:
        """Return the figures of a pod's containers, as `Reports.pod_series` says."""
        with database.reading(self._engine) as connection:
            return series.of_pod(connection, namespace, name, since_ms, until_ms)

    def history(self, filters: HistoryFilters = ALL_EVENTS, cursor: str = "", limit: int = 100) -> EntryPage:
        """Return a page of events, as `Reports.history` says."""
        with database.reading(self._engine) as connection:
            return event_list.page(connection, filters, cursor, limit)


def opened(home: Path, url: str, prices_file: Path | None, now_ms: Callable[[], int]) -> SqlReports:
    """Return reports of the history in the folder `home`, or in the database `url` where there is one.

    Raises:
        UnusableSetting: the URL, or the file with the prices, cannot be used.
    """
    engine = database.engine(url or database.sqlite_url(folder.sqlite_file(home)))
    return SqlReports(engine, prices.read(prices_file) if prices_file else Prices(), now_ms)
