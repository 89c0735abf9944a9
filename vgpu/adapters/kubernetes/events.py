"""Kubernetes Events, which `kubectl describe` shows."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError

MAX_MESSAGE = 1024  # the API server refuses longer ones
MAX_PREFIX = 200  # characters: a name has at most 253, and something is added that makes it unique


async def post(
    client: KubernetesClient,
    about: Mapping[str, str],
    *,
    reason: str,
    message: str,
    component: str,
    now: datetime,
    kind: str = "Warning",
) -> None:
    """Write one Event about an object; `kind` is Warning or Normal."""
    named = {"generateName": prefix(about["name"])}
    body = _event(about, named, reason=reason, message=message, component=component, now=now, kind=kind, count=1)
    await client.post(_path(about), body)


async def post_series(
    client: KubernetesClient,
    about: Mapping[str, str],
    name: str,
    *,
    reason: str,
    message: str,
    component: str,
    now: datetime,
    count: int,
) -> int:
    """Write the one Event of a series: create it where `count` is 1, or change its message, count and last time.

    Each write starts the Event's time to live again. Returns the count that the API server has stored, which is another
    one where an earlier process wrote to the series.

    Raises:
        KubernetesError: the API server refused, or could not be reached.
    """
    body = _event(
        about, {"name": name}, reason=reason, message=message, component=component, now=now, kind="Warning", count=count
    )
    change = {key: body[key] for key in ("message", "lastTimestamp", "count")}
    try:
        if count > 1:
            return _count(await client.patch(f"{_path(about)}/{name}", change))
        return _count(await client.post(_path(about), body))
    except KubernetesError as error:
        if error.status == HTTPStatus.NOT_FOUND and count > 1:
            return _count(await client.post(_path(about), body))
        if error.status == HTTPStatus.CONFLICT and count == 1:
            del change["count"]
            return _count(await client.patch(f"{_path(about)}/{name}", change))
        raise


def prefix(name: str) -> str:
    """Return the begin of an Event's name: an object's name, cut so that it is valid with what follows."""
    return name[:MAX_PREFIX].rstrip(".-") + "."


def _path(about: Mapping[str, str]) -> str:
    return f"/api/v1/namespaces/{about.get('namespace') or 'default'}/events"


def _count(event: bytes) -> int:
    return int(msgspec.json.decode(event).get("count") or 1)


def _event(
    about: Mapping[str, str],
    named: Mapping[str, str],
    *,
    reason: str,
    message: str,
    component: str,
    now: datetime,
    kind: str,
    count: int,
) -> dict[str, Any]:
    stamp = timestamps.seconds(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**named, "namespace": about.get("namespace") or "default"},
        "involvedObject": dict(about),
        "reason": reason,
        "message": message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…",
        "type": kind,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": count,
    }
