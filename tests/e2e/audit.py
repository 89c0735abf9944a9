"""The API server's audit log, replayed: the writes of a client, and the load of every card over time."""

import contextlib
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from vgpu.domain import names
from vgpu.domain.grants import assignment

Event = dict[str, Any]

_IGNORED = {"events", "leases"}
_TERMINAL = {"Succeeded", "Failed"}


class Load(NamedTuple):
    """What pods hold on a card."""

    memory_mib: int
    cores: int

    def plus(self, other: "Load") -> "Load":
        return Load(self.memory_mib + other.memory_mib, self.cores + other.cores)


class _Pod(NamedTuple):
    bound: dt.datetime
    held: dict[str, Load]


_NOTHING = Load(0, 0)


def read(log: Path, since: int = 0) -> Iterator[Event]:
    """The log's events from the byte offset `since`; take the log's present size as the offset of later events.

    Lines that a killed API server has left incomplete, and objects too deep to be decoded, are left out.
    """
    with log.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(line)


def stored(events: Iterable[Event]) -> Iterator[Event]:
    """The successful requests, in their order.

    When a client is killed while its Binding is under way, the answer is 504, but the Binding may be stored. Such a one
    comes before the first later answer that shows the pod on its node, and has the time of that answer.
    """
    in_doubt: dict[str, Event] = {}
    for event in events:
        if is_binding(event) and "requestObject" in event:  # not in that of a refused request
            in_doubt[event["requestObject"]["metadata"]["uid"]] = event
        if not _succeeded(event):
            continue
        response = event.get("responseObject") or {}
        if response.get("kind") == "Pod" and response["spec"].get("nodeName"):
            binding = in_doubt.pop(response["metadata"]["uid"], None)
            if binding and not _succeeded(binding):
                yield binding | {"stageTimestamp": event["stageTimestamp"]}
        yield event


def is_binding(event: Event) -> bool:
    """Whether the request binds a pod to a node."""
    return _label(event) == "create pods/binding"


def writes(log: Path, since: int, agent: str) -> list[str]:
    """`verb resource/subresource` of every successful write by a user agent, without Events and Leases."""
    successful = (event for event in read(log, since) if event["userAgent"].startswith(agent) and _succeeded(event))
    return [_label(event) for event in successful if event["objectRef"]["resource"] not in _IGNORED]


def peaks(log: Path, since: int, namespace: str) -> dict[str, Load]:
    """Peak load of each card by the bound pods of a Kubernetes namespace, by card UUID.

    A pod counts from the response to its Binding until the request that ended the pod. That is slightly less than the
    pod really held, so two pods that did not overlap never seem to overlap.
    """
    pods, ends = _pods(event for event in read(log, since) if event["objectRef"].get("namespace") == namespace)
    changes: dict[str, list[tuple[dt.datetime, Load]]] = {}
    for uid, pod in pods.items():
        for gpu, load in pod.held.items():
            released = [(ends[uid], Load(-load.memory_mib, -load.cores))] if uid in ends else []
            changes.setdefault(gpu, []).extend([(pod.bound, load), *released])
    return {gpu: _peak(change) for gpu, change in changes.items()}


def bound_at(log: Path, since: int, namespace: str) -> dict[str, float]:
    """When each pod of a Kubernetes namespace was bound, by pod name, in seconds since 1970."""
    events = (event for event in read(log, since) if event["objectRef"].get("namespace") == namespace)
    bindings = filter(is_binding, stored(events))
    return {event["objectRef"]["name"]: _moment(event, "stageTimestamp").timestamp() for event in bindings}


def failed(log: Path, since: int, namespace: str) -> dict[str, str]:
    """The message of each pod of a Kubernetes namespace that the kubelet rejected, by pod name; includes deleted pods.

    A pod that is deleted before its containers ran is Failed too, but its status has no reason.
    """
    responses = (event.get("responseObject") or {} for event in read(log, since) if _succeeded(event))
    pods = (
        response
        for response in responses
        if response.get("kind") == "Pod" and response["metadata"].get("namespace") == namespace
    )
    rejected = (pod for pod in pods if pod["status"].get("phase") == "Failed" and pod["status"].get("reason"))
    return {pod["metadata"]["name"]: pod["status"].get("message", "") for pod in rejected}


def _peak(changes: list[tuple[dt.datetime, Load]]) -> Load:
    sums = list(accumulate((load for _, load in sorted(changes)), Load.plus, initial=_NOTHING))
    return Load(max(load.memory_mib for load in sums), max(load.cores for load in sums))


def _pods(events: Iterable[Event]) -> tuple[dict[str, _Pod], dict[str, dt.datetime]]:
    """By pod UID: when the pod was bound and its load of each card; and when the pod ended."""
    pods: dict[str, _Pod] = {}
    ends: dict[str, dt.datetime] = {}
    for event in stored(events):
        if is_binding(event):
            binding = event["requestObject"]
            pods[binding["metadata"]["uid"]] = _Pod(_moment(event, "stageTimestamp"), _held(binding))
        elif uid := _ended(event):
            ends.setdefault(uid, _moment(event, "requestReceivedTimestamp"))
    return pods, ends


def _moment(event: Event, field: str) -> dt.datetime:
    return dt.datetime.fromisoformat(event[field])


def _held(binding: Event) -> dict[str, Load]:
    text = binding["metadata"].get("annotations", {}).get(names.ASSIGNMENT)
    held: dict[str, Load] = {}
    for grants in assignment.decode(text).containers.values() if text else ():
        for grant in grants:
            held[grant.gpu] = held.get(grant.gpu, _NOTHING).plus(Load(grant.memory_mib, grant.cores or 0))
    return held


def _ended(event: Event) -> str | None:
    """UID of the pod that this write made terminal or removed; None for other writes."""
    response = event.get("responseObject") or {}
    if response.get("kind") != "Pod":
        return None
    removed = event["verb"] == "delete" and response["metadata"].get("deletionGracePeriodSeconds", 0) == 0
    uid: str = response["metadata"]["uid"]
    return uid if removed or response["status"].get("phase") in _TERMINAL else None


def _succeeded(event: Event) -> bool:
    return bool(event["responseStatus"]["code"] < 300)


def _label(event: Event) -> str:
    target = event["objectRef"]
    resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
    return f"{event['verb']} {resource}"
