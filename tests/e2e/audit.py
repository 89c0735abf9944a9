"""The API server's audit log, replayed: who wrote what, and what every card held at every moment."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from vgpu import assignment, names

Event = dict[str, Any]

_APART = {"events", "leases"}
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
    """Events from this byte on; the size of the log now is where the next one begins."""
    with log.open("rb") as lines:
        lines.seek(since)
        yield from (json.loads(line) for line in lines if line.endswith(b"\n"))


def writes(log: Path, since: int, agent: str) -> list[str]:
    """`verb resource/subresource` of every successful write by an agent, Events and Leases apart."""
    mine = (event for event in read(log, since) if event["userAgent"].startswith(agent) and _succeeded(event))
    return [_label(event) for event in mine if event["objectRef"]["resource"] not in _APART]


def peaks(log: Path, since: int, space: str) -> dict[str, Load]:
    """The most that a Kubernetes namespace's bound pods ever held together on each card, by the card's UUID.

    A pod holds from the answer to its Binding until the request that ended it: a moment less than it truly held, so two
    pods never seem to meet that did not.
    """
    pods, ends = _pods(event for event in read(log, since) if event["objectRef"].get("namespace") == space)
    changes: dict[str, list[tuple[dt.datetime, Load]]] = {}
    for uid, pod in pods.items():
        for gpu, load in pod.held.items():
            given_back = [(ends[uid], Load(-load.memory_mib, -load.cores))] if uid in ends else []
            changes.setdefault(gpu, []).extend([(pod.bound, load), *given_back])
    return {gpu: _peak(each) for gpu, each in changes.items()}


def bound_at(log: Path, since: int, space: str) -> dict[str, float]:
    """When each pod of a Kubernetes namespace was bound, by its name, in seconds since 1970."""
    ours = (event for event in read(log, since) if event["objectRef"].get("namespace") == space)
    bindings = (event for event in ours if _label(event) == "create pods/binding" and _succeeded(event))
    return {event["objectRef"]["name"]: _moment(event, "stageTimestamp").timestamp() for event in bindings}


def failed(log: Path, since: int, space: str) -> dict[str, str]:
    """Why, for each pod of a Kubernetes namespace that the kubelet ever rejected, by its name; deleted ones too.

    A pod that is deleted before its containers ran ends as Failed as well, but for no reason.
    """
    answers = (event.get("responseObject") or {} for event in read(log, since) if _succeeded(event))
    pods = (each for each in answers if each.get("kind") == "Pod" and each["metadata"].get("namespace") == space)
    gone = (each for each in pods if each["status"].get("phase") == "Failed" and each["status"].get("reason"))
    return {each["metadata"]["name"]: each["status"].get("message", "") for each in gone}


def _peak(changes: list[tuple[dt.datetime, Load]]) -> Load:
    sums = list(accumulate((load for _, load in sorted(changes)), Load.plus, initial=_NOTHING))
    return Load(max(load.memory_mib for load in sums), max(load.cores for load in sums))


def _pods(events: Iterable[Event]) -> tuple[dict[str, _Pod], dict[str, dt.datetime]]:
    """By pod UID: when it was bound with what on which card, and when it ended."""
    pods: dict[str, _Pod] = {}
    ends: dict[str, dt.datetime] = {}
    for event in filter(_succeeded, events):
        if _label(event) == "create pods/binding":
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
    """UID of the pod that this write made terminal or removed."""
    answer = event.get("responseObject") or {}
    if answer.get("kind") != "Pod":
        return None
    removed = event["verb"] == "delete" and answer["metadata"].get("deletionGracePeriodSeconds", 0) == 0
    uid: str = answer["metadata"]["uid"]
    return uid if removed or answer["status"].get("phase") in _TERMINAL else None


def _succeeded(event: Event) -> bool:
    return bool(event["responseStatus"]["code"] < 300)


def _label(event: Event) -> str:
    about = event["objectRef"]
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    return f"{event['verb']} {resource}"
