"""Questions about a pod's JSON as its user wrote it, by our resource names or foreign ones."""

from collections.abc import Iterator
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import aliases, request
from vgpu.domain.json_types import Json

_PREFIX: Final = f"{names.DOMAIN}/"


def annotations(pod: Json) -> dict[str, str]:
    """Return the pod's annotations; empty where there are none."""
    return pod.get("metadata", {}).get("annotations") or {}


def labels(pod: Json) -> dict[str, str]:
    """Return the pod's labels; empty where there are none."""
    return pod.get("metadata", {}).get("labels") or {}


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
