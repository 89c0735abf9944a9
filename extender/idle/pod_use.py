"""For how long a pod has used none of its cards, from its node's report about each of its containers. Pure."""

from collections.abc import Iterator

from extender.state.fields import container_use
from extender.state.fields.container_use import ContainerUse
from extender.state.fields.lifecycle import ContainerRun
from extender.state.objects import WatchedPod
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import ContainerName

Uses = tuple[ContainerUse, ...]


def idle_ms(pod: WatchedPod, uses: Uses) -> int | None:
    """Return for how long no container of a pod has used a card, in ms; None where that is unknown.

    A pod is idle for as long as the container that used a card last. Containers that have ended, such as init
    containers, do not count. It is unknown where a container has not started, as one that waits to be started again, or
    where the node reports no idle time of it.
    """
    if not isinstance(pod.assignment, Assignment):
        return None
    runs = pod.lifecycle.runs or {}
    times = [
        time
        for container, grants in pod.assignment.containers.items()
        if not _has_ended(runs.get(container))
        for time in _times(container, grants, runs.get(container), uses)
    ]
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


def _times(
    container: ContainerName, grants: tuple[Grant, ...], run: ContainerRun | None, uses: Uses
) -> Iterator[int | None]:
    """Yield the idle time on each card. The start of the container and the report have their times from one clock."""
    for grant in grants:
        latest = container_use.now(uses, container, grant.gpu)
        if run is None or not run.started_ms or latest is None or latest.idle_ms is None:
            yield None
        else:
            yield max(0, min(latest.idle_ms, latest.until_ms - run.started_ms))


def _has_ended(run: ContainerRun | None) -> bool:
    return run is not None and run.exit is not None
