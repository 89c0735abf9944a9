"""Which events lie between two versions of a pod, as the watch shows them. Pure: the times come from the pod's status.

Only containers that hold a card count.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.history.recording.decisions import pod_name
from extender.history.recording.events import End, Event, Restart, Start
from extender.state.fields.lifecycle import ContainerRun
from extender.state.objects import WatchedPod
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NO_CONTAINER, ContainerName

DELETED: Final = "Deleted"
ENDED: Final = "Ended"
NO_RUN: Final = ContainerRun(-1, 0)


def holds_cards(pod: WatchedPod | None) -> bool:
    """Whether a pod is bound with an assignment that is trusted."""
    if pod is None or not pod.node:
        return False
    return isinstance(pod.assignment, Assignment) and pod.parsed.request is not None


def starts(before: WatchedPod | None, after: WatchedPod) -> Iterator[Event]:
    """Yield the starts of containers that `before` does not show."""
    for container, run in _runs(after).items():
        known = _runs(before).get(container, NO_RUN)
        if run.started_ms and (run.count, run.started_ms) != (known.count, known.started_ms):
            yield _start(after, container, run)


def end(last: WatchedPod, now_ms: int, *, after_ms: int | None = None, is_deleted: bool = False) -> Iterator[End]:
    """Yield the end of a pod, and before it those of its containers.

    Args:
        last: the pod's last version.
        now_ms: when the end became known.
        after_ms: when the pod was last known to hold its cards; None: the end was seen as it happened.
        is_deleted: whether the pod's object is gone; otherwise the pod is terminal.
    """
    begin_ms = now_ms if after_ms is None else min(after_ms, now_ms)
    for container, run in _runs(last).items():
        if run.started_ms:
            yield _container_end(last, container, run, begin_ms, now_ms)
    exits = [run.exit.at_ms for run in (last.lifecycle.runs or {}).values() if run.exit]
    if not is_deleted and exits:  # the last container's end is the pod's
        begin_ms = now_ms = max(exits)
    yield End(pod_name(last), last.node, NO_CONTAINER, begin_ms, now_ms, reason=DELETED if is_deleted else ENDED)


def _runs(pod: WatchedPod | None) -> Mapping[ContainerName, ContainerRun]:
    if pod is None or not isinstance(pod.assignment, Assignment):
        return {}
    return {name: run for name, run in (pod.lifecycle.runs or {}).items() if name in pod.assignment.containers}


def _start(pod: WatchedPod, container: ContainerName, run: ContainerRun) -> Event:
    if run.count <= 0:
        return Start(pod_name(pod), pod.node, container, run.started_ms)
    last = run.last_exit
    ended = (last.at_ms, last.code, last.reason) if last else (0, None, "")
    return Restart(pod_name(pod), pod.node, container, run.started_ms, run.count, *ended)


def _container_end(pod: WatchedPod, container: ContainerName, run: ContainerRun, after_ms: int, at_ms: int) -> End:
    if run.exit:
        known = run.exit
        return End(pod_name(pod), pod.node, container, known.at_ms, known.at_ms, known.code, known.reason)
    return End(pod_name(pod), pod.node, container, after_ms, at_ms)
