"""Questions about a pod's JSON as its user wrote it, by our resource names or foreign ones."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import aliases, request
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem

_PREFIX: Final = f"{names.DOMAIN}/"


def annotations(pod: Json) -> dict[str, str]:
    """Return the pod's annotations; empty where there are none."""
    return pod.get("metadata", {}).get("annotations") or {}


def labels(pod: Json) -> dict[str, str]:
    """Return the pod's labels; empty where there are none."""
    return pod.get("metadata", {}).get("labels") or {}


def not_text(pod: object) -> Iterator[Problem]:
    """Yield a problem for each annotation and label whose value is no text, as YAML reads one without quotes.

    The pod may be any JSON: where something else is of a wrong type, this says nothing of it.
    """
    metadata = pod.get("metadata") if isinstance(pod, Mapping) else None
    for where in ("annotations", "labels"):
        found = metadata.get(where) if isinstance(metadata, Mapping) else None
        for name, value in found.items() if isinstance(found, Mapping) else ():
            if not isinstance(value, str):
                written = isinstance(value, bool | int | float)
                quoted = f": write {json.dumps(json.dumps(value))}" if written else ""
                yield Problem(f"metadata.{where}[{name}]", "", f"must be text{quoted}")


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
