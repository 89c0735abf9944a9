"""Questions about a pod's JSON that both mutation and validation ask."""

from collections.abc import Iterator
from typing import Final

from vgpu import aliases, names, request
from vgpu.request import Json

MIRROR: Final = "kubernetes.io/config.mirror"
VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
NODES_GROUP: Final = "system:nodes"
_PREFIX: Final = f"{names.DOMAIN}/"


def annotations(pod: Json) -> dict[str, str]:
    """Return the pod's annotations; empty where there are none."""
    return pod.get("metadata", {}).get("annotations") or {}


def is_mirror(pod: Json, groups: list[str]) -> bool:
    """Whether a kubelet creates the API object of a static pod, which runs already: refusing it has no effect.

    The annotation alone is not enough, because users can write it too.
    """
    return MIRROR in annotations(pod) and NODES_GROUP in groups


def wants_gpu(pod: Json) -> bool:
    """Whether any container, also an ephemeral one, names one of our resources or a foreign one."""
    return any(asks(container) for _, container in every_container(pod))


def asks(container: Json) -> bool:
    """Whether a container names one of our resources or a foreign one."""
    resources = container.get("resources") or {}
    named = (name for side in ("limits", "requests") for name in resources.get(side) or ())
    return any(name.startswith(_PREFIX) or name in aliases.MARKER_NAMES for name in named)


def every_container(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the containers of all kinds, with their field paths."""
    for path, _, container in request.containers_of(pod):
        yield path, container
    yield from ephemeral_containers(pod)


def ephemeral_containers(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the containers that were added to a running pod, with their field paths."""
    for container in pod.get("spec", {}).get("ephemeralContainers") or ():
        yield f"spec.ephemeralContainers[{container.get('name')}]", container
