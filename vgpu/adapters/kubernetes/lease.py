"""Leases, for leader election and heartbeats.

A Lease is taken and renewed by a read and a write with the resourceVersion that was read: of two clients that try, one
gets 409. A client that takes over a Lease must not assume that its clock agrees with the holder's. It watches the Lease
and passes `is_expired`, which says whether the record was unchanged for its duration by the client's own clock (the
rule of client-go's leaderelection).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError

_RELEASE_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease's content. `holder` is empty where the Lease was released."""

    holder: str
    renewed: datetime
    duration_s: int
    transitions: int

    def is_expired(self, now: datetime) -> bool:
        """Whether the Lease has not been renewed for its duration."""
        return (now - self.renewed).total_seconds() > self.duration_s


def decode(lease: dict[str, Any]) -> LeaseRecord:
    """Read a Lease object; missing fields mean no holder, renewed in 1970."""
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        renewed=datetime.fromisoformat(renewed) if renewed else datetime.fromtimestamp(0, UTC),
        duration_s=spec.get("leaseDurationSeconds") or 0,
        transitions=spec.get("leaseTransitions") or 0,
    )


async def renew(
    client: KubernetesClient,
    namespace: str,
    name: str,
    identity: str,
    duration_s: int,
    now: datetime,
    *,
    is_expired: Callable[[LeaseRecord], bool] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> LeaseRecord | None:
    """Create, take over or renew a Lease in two requests; None where another client holds it, or was faster.

    `is_expired` says whether another holder's Lease has expired; without it the times in the Lease decide.
    `annotations` are written beside those that the Lease has.

    Raises:
        KubernetesError: the API server failed; whether the Lease was renewed is then unknown.
    """
    lease = await _read(client, namespace, name)
    if lease is None:
        record = LeaseRecord(identity, now, duration_s, 0)
        made = _annotated(_object(namespace, name, record), annotations)
        return await _write(client.post, path(namespace), made, record)
    held = decode(lease)
    has_expired = held.is_expired(now) if is_expired is None else is_expired(held)
    if held.holder not in {"", identity} and not has_expired:
        return None
    record = LeaseRecord(identity, now, duration_s, held.transitions + (held.holder != identity))
    body = _annotated({**lease, "spec": _spec(record)}, annotations)
    return await _write(client.put, path(namespace, name), body, record)


async def release(client: KubernetesClient, namespace: str, name: str, identity: str, now: datetime) -> None:
    """Release a Lease if `identity` holds it, so that the next holder need not wait for its expiry.

    A renewal that was under way when its task was cancelled may be carried out between the read and the write, so a
    conflict is followed by another read.

    Raises:
        KubernetesError: the API server failed, or the Lease was written at the same time in each of ten attempts.
    """
    for _ in range(_RELEASE_ATTEMPTS):
        lease = await _read(client, namespace, name)
        if lease is None or decode(lease).holder != identity:
            return
        record = LeaseRecord("", now, 1, decode(lease).transitions)
        if await _write(client.put, path(namespace, name), {**lease, "spec": _spec(record)}, record):
            return
    raise KubernetesError(HTTPStatus.CONFLICT, "Conflict", f"lease {name} was written at the same time")


def renewed(known: dict[str, Any], holder: str, duration_s: int, now: datetime) -> dict[str, Any]:
    """Return a Lease with another holder and time, with the version that is known: of two writers one gets 409."""
    return {**known, "spec": _spec(LeaseRecord(holder, now, duration_s, decode(known).transitions))}


def path(namespace: str, name: str = "") -> str:
    """Return the path of a Lease, or of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases" + (f"/{name}" if name else "")


async def _read(client: KubernetesClient, namespace: str, name: str) -> dict[str, Any] | None:
    try:
        lease: dict[str, Any] = msgspec.json.decode(await client.get(path(namespace, name), timeout=5))
    except KubernetesError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    return lease


async def _write(verb: Any, path: str, body: dict[str, Any], record: LeaseRecord) -> LeaseRecord | None:
    try:
        await verb(path, body, timeout=5)
    except KubernetesError as error:
        if error.status == HTTPStatus.CONFLICT:
            return None
        raise
    return record


def _annotated(lease: dict[str, Any], annotations: Mapping[str, str] | None) -> dict[str, Any]:
    metadata = lease["metadata"]
    found = {**(metadata.get("annotations") or {}), **(annotations or {})}
    return {**lease, "metadata": {**metadata, **({"annotations": found} if found else {})}}


def _object(namespace: str, name: str, record: LeaseRecord) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": _spec(record),
    }


def _spec(record: LeaseRecord) -> dict[str, Any]:
    stamp = timestamps.micros(record.renewed)
    return {
        "holderIdentity": record.holder,
        "renewTime": stamp,
        "leaseDurationSeconds": record.duration_s,
        "leaseTransitions": record.transitions,
    }
