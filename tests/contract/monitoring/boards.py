"""The Grafana dashboards: manifests/monitoring/boards.yaml lists their panels, from which their JSON is made."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tests.contract.monitoring import rules

FOLDER = rules.FOLDER / "dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: what it shows, in Grafana's unit, by one or more queries with the legend of each.

    Attributes:
        title: of the panel.
        text: what it says, for a reader who sees it for the first time.
        unit: Grafana's name of the unit.
        queries: expression and legend.
        kind: timeseries, stat or bargauge.
        width: of 24 columns.
    """

    title: str
    text: str
    unit: str
    queries: Sequence[tuple[str, str]]
    kind: str = "timeseries"
    width: int = 12


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. `variables` has the query of each, by its name."""

    uid: str
    title: str
    variables: dict[str, str]
    panels: Sequence[Panel]

    @property
    def text(self) -> str:
        """The JSON."""
        return json.dumps(_board(self), indent=1) + "\n"


def _board(board: Board) -> Json:
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["vgpushare"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), *(_variable(*item) for item in board.variables.items())]},
        "annotations": {"list": []},
        "links": [
            {
                "title": "vgpushare",
                "type": "dashboards",
                "tags": ["vgpushare"],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "panels": list(_panels(board.panels)),
    }  # fmt: skip


def _datasource() -> Json:
    source = {"label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {"name": "datasource", **source, "hide": 0, "regex": ""}


def _variable(name: str, query: str) -> Json:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }


def _panels(panels: Sequence[Panel]) -> Iterator[Json]:
    x = y = row_height = 0
    for number, panel in enumerate(panels, 1):
        height = 8 if panel.kind == "timeseries" else 4
        if x + panel.width > _COLUMNS:
            x, y = 0, y + row_height
        row_height = height if x == 0 else max(row_height, height)
        yield _panel(number, panel, {"h": height, "w": panel.width, "x": x, "y": y})
        x += panel.width


def _panel(number: int, panel: Panel, place: Json) -> Json:
    options: Json = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    if panel.kind != "timeseries":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "auto"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + place_), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for place_, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _read() -> Iterator[Board]:
    for board in yaml.safe_load((rules.FOLDER / "boards.yaml").read_text())["dashboards"]:
        panels = tuple(
            Panel(**{**panel, "queries": tuple((query["expr"], query["legend"]) for query in panel["queries"])})
            for panel in board["panels"]
        )
        yield Board(board["uid"], board["title"], board["variables"], panels)


BOARDS = tuple(_read())
