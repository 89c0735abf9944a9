"""The pods of the extender and of the webhook: which images they run, for answers about versions."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace

TIMEOUT_S: Final = 5.0
SELECTORS: Final = (
    "app.kubernetes.io/name in (vgpu-scheduler, vgpu-webhook)",
    # Beside the cluster's own scheduler the extender is a DaemonSet.
    "app.kubernetes.io/component=extender",
)
MOST: Final = 100  # pods by each selector
_UNTAGGED: Final = ""


class PodsClient(Protocol):
    """The part of the API client that reads."""

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float) -> bytes:
        """GET a list. Raises KubernetesError."""


class _Container(msgspec.Struct):
    name: str = ""
    image: str = ""


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Metadata(msgspec.Struct):
    name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


class InstalledPods:
    """Reads the pods of the namespace in which vgpushare is installed."""

    def __init__(self, client: PodsClient, namespace: Namespace) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    async def images(self) -> dict[tuple[str, str], int]:
        """Return how many containers run an image, by the container's name and the image; empty if it is not known."""
        try:
            pods = {pod.metadata.name: pod for selector in SELECTORS for pod in await self._selected(selector)}
        except (KubernetesError, msgspec.DecodeError):
            return {}
        return Counter((container.name, container.image) for pod in pods.values() for container in pod.spec.containers)

    async def _selected(self, selector: str) -> list[_Pod]:
        query = {"labelSelector": selector, "limit": str(MOST)}
        return msgspec.json.decode(await self._client.get(self._path, query, timeout=TIMEOUT_S), type=_Pods).items


def tag(image: str) -> str:
    """Return the tag of an image, or its digest; empty where it has neither."""
    name, _, digest = image.partition("@")
    return digest or name.rpartition("/")[2].partition(":")[2] or _UNTAGGED
