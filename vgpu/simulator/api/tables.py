"""Lists as `kubectl get` asks for them: a Table, whose cells the server fills.

https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import json_path, pod_cells, resources
from vgpu.simulator.api.ages import age
from vgpu.simulator.api.resources import Resource

ACCEPTED: Final = "as=Table;v=v1;g=meta.k8s.io"
_KIND: Final = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
_PARTIAL: Final = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}

Cell = Callable[[JsonObject, datetime], Any]  # an object and the time now


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. Those with a priority above 0 are shown by `-o wide` only."""

    name: str
    cell: Cell
    kind: str = "string"
    priority: int = 0

    def definition(self) -> JsonObject:
        """Return the column's entry in `columnDefinitions`."""
        form = "name" if self.name == "Name" else ""
        return {"name": self.name, "type": self.kind, "format": form, "description": "", "priority": self.priority}


def table(
    columns: Sequence[TableColumn], objects: Iterable[JsonObject], metadata: JsonObject, now: datetime
) -> JsonObject:
    """Return objects as a Table; `metadata` is that of the list."""
    definitions = [column.definition() for column in columns]
    rows = [_row(columns, obj, now) for obj in objects]
    return {**_KIND, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}


def columns_of(resource: Resource, crd: JsonObject | None) -> Sequence[TableColumn]:
    """Return a resource's columns: kubectl's own, or those of its CustomResourceDefinition."""
    if crd is not None:
        return (_NAME, *_printed(resource, crd))
    return _BUILTIN.get(resource.name, (_NAME, _AGE))


def _row(columns: Sequence[TableColumn], obj: JsonObject, now: datetime) -> JsonObject:
    return {"cells": [column.cell(obj, now) for column in columns], "object": {**_PARTIAL, "metadata": obj["metadata"]}}


def _printed(resource: Resource, crd: JsonObject) -> Sequence[TableColumn]:
    """Read `additionalPrinterColumns`; a definition without them has the age."""
    versions = {version["name"]: version for version in crd["spec"]["versions"]}
    wanted = versions[resource.version].get("additionalPrinterColumns") or ()
    return [_custom(column) for column in wanted] or [_AGE]


def _custom(wanted: Mapping[str, Any]) -> TableColumn:
    find, is_date = json_path.compiled(wanted["jsonPath"]), wanted["type"] == "date"

    def cell(obj: JsonObject, now: datetime) -> Any:
        found = find(obj)
        return age(found, now) if is_date else found

    return TableColumn(wanted["name"], cell, wanted["type"], wanted.get("priority", 0))


def _at(path: str) -> Cell:
    find = json_path.compiled(path)
    return lambda obj, _: "" if (found := find(obj)) is None else found


def _since(path: str) -> Cell:
    find = json_path.compiled(path)
    return lambda obj, now: age(find(obj), now)


def _node_status(node: JsonObject, _: datetime) -> str:
    conditions = {
        condition.get("type"): condition.get("status") for condition in node.get("status", {}).get("conditions") or ()
    }
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    return f"{ready},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else ready


def _involved(event: JsonObject, _: datetime) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


_NAME: Final = TableColumn("Name", _at(".metadata.name"))
_AGE: Final = TableColumn("Age", _since(".metadata.creationTimestamp"))
_BUILTIN: Final[Mapping[str, Sequence[TableColumn]]] = {
    resources.PODS.name: (
        _NAME,
        TableColumn("Ready", lambda pod, _: pod_cells.ready(pod)),
        TableColumn("Status", lambda pod, _: pod_cells.status(pod)),
        TableColumn("Restarts", lambda pod, _: pod_cells.restarts(pod)),
        _AGE,
        TableColumn("IP", lambda pod, _: pod.get("status", {}).get("podIP") or "<none>", priority=1),
        TableColumn("Node", lambda pod, _: pod["spec"].get("nodeName") or "<none>", priority=1),
        TableColumn(
            "Nominated Node", lambda pod, _: pod.get("status", {}).get("nominatedNodeName") or "<none>", priority=1
        ),
    ),
    resources.NODES.name: (
        _NAME,
        TableColumn("Status", _node_status),
        _AGE,
        TableColumn("Version", _at(".status.nodeInfo.kubeletVersion")),
    ),
    resources.NAMESPACES.name: (_NAME, TableColumn("Status", _at(".status.phase")), _AGE),
    resources.EVENTS.name: (
        TableColumn("Last Seen", _since(".lastTimestamp")),
        TableColumn("Type", _at(".type")),
        TableColumn("Reason", _at(".reason")),
        TableColumn("Object", _involved),
        TableColumn("Message", _at(".message")),
        TableColumn("Name", _at(".metadata.name"), priority=1),
    ),
    resources.LEASES.name: (_NAME, TableColumn("Holder", _at(".spec.holderIdentity")), _AGE),
}
