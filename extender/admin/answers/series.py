"""Series of figures, as columns: a chart takes them as they are, and a name stands once for a day of figures."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from extender.admin.answers.listed.columns import AnswerSchema
from extender.admin.answers.listed.figures import UUID
from extender.admin.answers.paging import Row
from extender.admin.answers.schemas import HistoryStaleSince, HistoryStoredSince
from extender.history.reporting.reports import ContainerSeries, MeasuredFigure
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName


class WaitColumnsSchema(AnswerSchema):
    """For how long launches waited in each figure's time, in milliseconds, by cause; null: not known."""

    turn: list[int | None] = Field(description="another container had the card", examples=[[1200, 900]])
    share: list[int | None] = Field(description="the container's share was used up", examples=[[300, 0]])
    drain: list[int | None] = Field(description="the container's own work was waited for", examples=[[0, 0]])
    queued: list[int | None] = Field(description="on the card, while the host went on", examples=[[0, 0]])


class FiguresSchema(AnswerSchema):
    """Figures, the oldest first: entry n of each list is of the time from `fromMs[n]` to `untilMs[n]`."""

    fromMs: list[int] = Field(description="beginning, in Unix milliseconds", examples=[[1790000000000, 1790000300000]])
    untilMs: list[int] = Field(description="end, in Unix milliseconds", examples=[[1790000300000, 1790000600000]])
    usedMs: list[int] = Field(
        description="of a container, GPU time used; of a card, time in which it was busy", examples=[[66000, 81000]]
    )
    usedCores: list[float] = Field(description="the same, as percent of the time", examples=[[22.0, 27.0]])
    usedMiB: list[int | None] = Field(
        description="memory in use at the end; in figures of an hour the most; null: not known", examples=[[5120, 5120]]
    )


class CardFiguresSchema(FiguresSchema):
    """Figures of a card."""

    celsius: list[int | None] = Field(description="temperature of the GPU at the end", examples=[[61, 63]])
    watts: list[int | None] = Field(description="power drawn at the end", examples=[[240, 255]])


class ContainerSeriesSchema(FiguresSchema):
    """Figures of a container on a card."""

    namespace: Namespace = Field(examples=["default"])
    pod: str = Field(examples=["train"])
    container: ContainerName = Field(examples=["main"])
    uuid: CardUuid = Field(examples=[UUID])
    waitMs: WaitColumnsSchema


class PodSeriesSchema(AnswerSchema):
    """Figures of a pod's containers."""

    since: str = Field(examples=["2026-11-22T12:00:00.000Z"])
    until: str = Field(examples=["2026-11-23T12:00:00.000Z"])
    containers: list[ContainerSeriesSchema]
    complete: bool = Field(description="false: too many figures; ask for a shorter time")
    storedSince: HistoryStoredSince = ""
    staleSince: HistoryStaleSince = ""


class CardSeriesSchema(PodSeriesSchema):
    """Figures of a card, and of the containers on it whose pods the caller may see."""

    uuid: CardUuid = Field(examples=[UUID])
    node: NodeName = Field(examples=["node-1"])
    card: CardFiguresSchema


def card_columns(figures: Sequence[MeasuredFigure]) -> Row:
    """Return a card's figures as columns."""
    sensors = {"celsius": [figure.celsius for figure in figures], "watts": [figure.watts for figure in figures]}
    return {**_columns(figures), **sensors}


def container_columns(series: ContainerSeries) -> Row:
    """Return a container's figures as columns, with its names."""
    figures = series.figures
    waits = {cause: [_wait(figure, n) for figure in figures] for n, cause in enumerate(WAIT_CAUSES)}
    names = {"namespace": series.namespace, "pod": series.pod, "container": series.container, "uuid": series.gpu}
    return {**names, **_columns(figures), "waitMs": waits}


def _columns(figures: Sequence[MeasuredFigure]) -> dict[str, list[Any]]:
    return {
        "fromMs": [figure.from_ms for figure in figures],
        "untilMs": [figure.until_ms for figure in figures],
        "usedMs": [figure.used_ms for figure in figures],
        "usedCores": [_percent(figure) for figure in figures],
        "usedMiB": [figure.used_mib for figure in figures],
    }


def _percent(figure: MeasuredFigure) -> float:
    return round(100 * figure.used_ms / (figure.until_ms - figure.from_ms), 2)


def _wait(figure: MeasuredFigure, cause: int) -> int | None:
    return figure.wait_ms[cause] if figure.wait_ms else None
