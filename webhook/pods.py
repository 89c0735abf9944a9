"""Questions about a pod's JSON that both admissions ask."""

from collections.abc import Iterator
from typing import Final

from vgpu import aliases, names, request
from vgpu.request import Json

MIRROR: Final = "kubernetes.io/config.mirror"
NODES_GROUP: Final = "system:nodes"
_PREFIX: Final = f"{names.DOMAIN}/"


def annotations(pod: Json) -> dict[str, str]:
    """Return the pod's annotations; empty where there are none."""
    return pod.get("metadata", {}).get("annotations") or {}


def is_mirror(pod: Json, groups: list[str]) -> bool:
    """Whether a kubelet shows a static pod of its own: it runs already, and nothing we say changes it.

    The annotation alone proves nothing, for users may write it too.
    """
    return MIRROR in annotations(pod) and NODES_GROUP in groups


def wants_gpu(pod: Json) -> bool:
    """Whether any container, ephemeral ones too, names a resource of ours or one that we translate."""
    return any(asks(container) for _, container in every_container(pod))


def asks(container: Json) -> bool:
    """Whether this container names a resource of ours or one that we translate."""
    return any(name.startswith(_PREFIX) or name in aliases.MARKER_NAMES for name in request.amounts(container))


def every_container(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the containers of all kinds with their field paths."""
    for path, _, container in request.containers_of(pod):
        yield path, container
    yield from ephemeral_containers(pod)


def ephemeral_containers(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the containers that were added to a running pod."""
    for container in pod.get("spec", {}).get("ephemeralContainers") or ():
        yield f"spec.ephemeralContainers[{container.get('name')}]", container
