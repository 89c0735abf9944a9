"""For how long a pod has been idle, from the report of its node."""

from typing import Any

import msgspec
import pytest

from extender.idle import pod_use
from extender.state.fields.container_use import ContainerUse
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

STARTED = "2026-11-23T10:00:00Z"
STARTED_MS = 1795428000_000
NOW_MS = STARTED_MS + 7_200_000
RUNNING = {"running": {"startedAt": STARTED}}
ENDED = {"terminated": {"startedAt": STARTED, "finishedAt": STARTED, "exitCode": 0}}


def pod(*containers: str, **states: dict[str, Any]) -> WatchedPod:
    made = strategies.pod(*(strategies.container(container, gpu_mem=256) for container in containers))
    granted = Assignment(
        {ContainerName(container): (Grant(CardUuid(f"GPU-{container}"), 256),) for container in containers}
    )
    made["metadata"]["annotations"] = {names.ASSIGNMENT: assignment.encode(granted)}
    made["metadata"]["uid"], made["spec"]["nodeName"] = "uid", "n1"
    made["status"] = {
        "containerStatuses": [{"name": container, "state": states.get(container, RUNNING)} for container in containers]
    }
    return PodReader().encoded(msgspec.json.encode(made))


def use(container: str, idle_ms: int | None, until_ms: int = NOW_MS) -> ContainerUse:
    return ContainerUse(
        PodUid("uid"),
        ContainerName(container),
        CardUuid(f"GPU-{container}"),
        until_ms - 3_600_000,
        until_ms,
        0,
        idle_ms=idle_ms,
    )


def test_a_pod_is_idle_for_as_long_as_its_last_container() -> None:
    uses = (use("a", 600_000), use("b", 5_000))
    assert pod_use.idle_ms(pod("a", "b"), uses) == 5_000


def test_the_latest_entry_counts() -> None:
    uses = (use("a", 9_000_000, NOW_MS - 1000), use("a", 100), use("a", None, NOW_MS - 2000))
    assert pod_use.idle_ms(pod("a"), uses) == 100


@pytest.mark.parametrize("uses", [(), (use("a", 600_000),), (use("a", 600_000), use("b", None))])
def test_a_container_that_nothing_is_known_of_makes_the_pod_unknown(uses: tuple[ContainerUse, ...]) -> None:
    assert pod_use.idle_ms(pod("a", "b"), uses) is None


def test_containers_that_have_ended_do_not_count_and_one_that_waits_for_its_start_makes_the_pod_unknown() -> None:
    uses = (use("a", 600_000), use("b", 7_000))
    assert pod_use.idle_ms(pod("a", "b", b=ENDED), uses) == 600_000
    assert pod_use.idle_ms(pod("a", "b", b={"waiting": {"reason": "CrashLoopBackOff"}}), uses) is None
    assert pod_use.idle_ms(pod("a", a=ENDED), uses) is None


def test_a_container_is_idle_from_its_start_at_most() -> None:
    assert pod_use.idle_ms(pod("a"), (use("a", 9_000_000, STARTED_MS + 60_000),)) == 60_000
    assert pod_use.idle_ms(pod("a"), (use("a", 9_000_000, STARTED_MS - 60_000),)) == 0  # the clock was set back


def test_a_pod_without_a_trusted_assignment_is_unknown() -> None:
    made = strategies.pod(strategies.container("a", gpu_mem=256))
    assert pod_use.idle_ms(PodReader().encoded(msgspec.json.encode(made)), (use("a", 1),)) is None
