"""Remembers how many replicas an owner had before it was scaled to zero: in a ConfigMap of our own namespace.

An annotation of the owner would need the right to change Deployments, and with it what they run. The ConfigMap comes
with the manifests; the extender has no other right to write ConfigMaps.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.idle.owners import ScalableOwner
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace

NAME: Final = "vgpu-idle"
MAX_ENTRIES: Final = 2_000
_LONGEST_KEY: Final = 253


class Size(msgspec.Struct, frozen=True):
    """An owner's size before it was scaled to zero, and when that was, in Unix ms."""

    kind: str
    namespace: Namespace
    name: str
    replicas: int
    at_ms: int = msgspec.field(name="atMs")


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


_decode_map = msgspec.json.Decoder(_ConfigMap).decode
_decode_size = msgspec.json.Decoder(Size).decode


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes in the ConfigMap of `namespace`. All requests raise KubernetesError."""

    client: KubernetesClient
    namespace: Namespace

    async def remember(self, owner: ScalableOwner, replicas: int, now_ms: int) -> None:
        """Store an owner's size; where there are too many, the oldest of the namespace with most is forgotten."""
        known = await self._read()
        key = _key(owner)
        size = Size(owner.kind, owner.namespace, owner.name, replicas, now_ms)
        change: dict[str, str | None] = {key: msgspec.json.encode(size).decode()}
        if len(known) >= MAX_ENTRIES and key not in known:
            change[_forgotten(known)] = None
        await self.client.patch(self._path, {"data": change})

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{NAME}"

    async def _read(self) -> dict[str, str]:
        return _decode_map(await self.client.get(self._path)).data or {}


def _key(owner: ScalableOwner) -> str:
    """Return the key of an owner: its name where the key is short enough, else a digest."""
    text = f"{owner.kind}.{owner.namespace}.{owner.name}"
    return text if len(text) <= _LONGEST_KEY else hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _forgotten(known: Mapping[str, str]) -> str:
    """Return the key of the size that makes room: one that cannot be read, else the oldest of the largest namespace."""
    sizes = {key: _decoded(text) for key, text in known.items()}
    counts = Counter(size.namespace for size in sizes.values() if size)

    def rank(key: str) -> tuple[int, Namespace, int]:
        size = sizes[key]
        return (-counts[size.namespace], size.namespace, size.at_ms) if size else (-len(known), NO_NAMESPACE, 0)

    return min(sizes, key=rank)


def _decoded(text: str) -> Size | None:
    """Return a stored size; None for an entry that cannot be read."""
    try:
        return _decode_size(text)
    except msgspec.MsgspecError:
        return None
