"""Kubernetes Events, which `kubectl describe` shows."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from vgpu.adapters.kubernetes.client import Client

MAX_MESSAGE = 1024  # the API server refuses longer ones


def involved(obj: Mapping[str, Any], api_version: str, kind: str) -> dict[str, str]:
    """Return the reference in an Event to the object that the Event is about."""
    metadata = obj["metadata"]
    reference = {"apiVersion": api_version, "kind": kind}
    return reference | {key: metadata[key] for key in ("namespace", "name", "uid") if metadata.get(key)}


async def post(
    client: Client,
    about: Mapping[str, str],
    *,
    reason: str,
    message: str,
    component: str,
    now: datetime,
    kind: str = "Warning",
) -> None:
    """Write one Event about an object; `kind` is Warning or Normal."""
    namespace = about.get("namespace") or "default"
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{about['name'][:200]}.", "namespace": namespace},
        "involvedObject": dict(about),
        "reason": reason,
        "message": message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…",
        "type": kind,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    await client.post(f"/api/v1/namespaces/{namespace}/events", body)
