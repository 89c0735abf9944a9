"""Leases: who leads, and who is alive.

A Lease is taken and renewed by read, decide, write with the resourceVersion read: of two that try, one gets 409.
Who takes over from another must not trust that both clocks agree: he watches the Lease, and says by `is_expired`
when the record read is one that has stood unchanged for its duration by his own clock (the rule of client-go's
leaderelection).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError

NOT_FOUND = 404
CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Record:
    """A Lease's content. `holder` is empty where it was released."""

    holder: str
    renewed: datetime
    duration_s: int
    transitions: int

    def is_expired(self, now: datetime) -> bool:
        """Whether it has not been renewed for its duration."""
        return (now - self.renewed).total_seconds() > self.duration_s


def decode(lease: dict[str, Any]) -> Record:
    """Read a Lease object; what is missing reads as long ago and nobody."""
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    return Record(
        holder=spec.get("holderIdentity") or "",
        renewed=datetime.fromisoformat(renewed) if renewed else datetime.fromtimestamp(0, UTC),
        duration_s=spec.get("leaseDurationSeconds") or 0,
        transitions=spec.get("leaseTransitions") or 0,
    )


async def renew(
    client: Client,
    namespace: str,
    name: str,
    identity: str,
    duration_s: int,
    now: datetime,
    *,
    is_expired: Callable[[Record], bool] | None = None,
) -> Record | None:
    """Create, take over or renew a Lease in two requests; None where somebody else holds it, or was faster.

    `is_expired` says whether another holder's time is over; without it the times written in the Lease decide.

    Raises:
        KubernetesError: the API server failed; whether the Lease was renewed is then unknown.
    """
    lease = await _read(client, namespace, name)
    if lease is None:
        record = Record(identity, now, duration_s, 0)
        return await _write(client.post, _path(namespace), _object(namespace, name, record), record)
    held = decode(lease)
    is_over = held.is_expired(now) if is_expired is None else is_expired(held)
    if held.holder not in {"", identity} and not is_over:
        return None
    record = Record(identity, now, duration_s, held.transitions + (held.holder != identity))
    body = {**lease, "spec": _spec(record)}
    return await _write(client.put, _path(namespace, name), body, record)


async def release(client: Client, namespace: str, name: str, identity: str, now: datetime) -> None:
    """Give a Lease up if `identity` holds it, so that nobody has to wait it out."""
    lease = await _read(client, namespace, name)
    if lease is not None and decode(lease).holder == identity:
        record = Record("", now, 1, decode(lease).transitions)
        await _write(client.put, _path(namespace, name), {**lease, "spec": _spec(record)}, record)


def _path(namespace: str, name: str = "") -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases" + (f"/{name}" if name else "")


async def _read(client: Client, namespace: str, name: str) -> dict[str, Any] | None:
    try:
        lease: dict[str, Any] = msgspec.json.decode(await client.get(_path(namespace, name), timeout=5))
    except KubernetesError as error:
        if error.status == NOT_FOUND:
            return None
        raise
    return lease


async def _write(verb: Any, path: str, body: dict[str, Any], record: Record) -> Record | None:
    try:
        await verb(path, body, timeout=5)
    except KubernetesError as error:
        if error.status == CONFLICT:
            return None
        raise
    return record


def _object(namespace: str, name: str, record: Record) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": _spec(record),
    }


def _spec(record: Record) -> dict[str, Any]:
    stamp = record.renewed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "holderIdentity": record.holder,
        "renewTime": stamp,
        "leaseDurationSeconds": record.duration_s,
        "leaseTransitions": record.transitions,
    }
