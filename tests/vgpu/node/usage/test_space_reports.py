"""Pods whose processes are outside of their group in space are reported."""

from dataclasses import replace

from tests.vgpu.node.builders import bound
from vgpu.domain import names
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.formats import region
from vgpu.domain.identifiers import ContainerName, Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.usage import space_reports

MAIN, SIDE = ContainerName("main"), ContainerName("side")
SLOT = 704


def member(name: str) -> BoundPod:
    return replace(bound(name), space=SpaceOptions(SpaceGroup(Namespace("default"), "models")))


def test_a_member_with_processes_outside_of_its_group_is_reported_once() -> None:
    pod, joined = member("p"), member("joined")
    outside = {(pod.uid, MAIN): 2, (pod.uid, SIDE): 1, (joined.uid, MAIN): 0}
    (report,) = space_reports.reports(outside, (pod, joined), 16)
    assert (report["pod"], report["reason"], report["evict"]) == ("default/p", names.SPACE_NOT_JOINED, False)
    assert "container main: 2, container side: 1. They take turns by themselves" in report["message"]


def test_no_more_pods_are_reported_than_there_is_room_for() -> None:
    pods = [member(f"p{number}") for number in range(5)]
    outside = {(pod.uid, MAIN): 1 for pod in pods}
    assert [len(space_reports.reports(outside, pods, most)) for most in (0, 3, 9)] == [0, 3, 5]


def test_a_pod_outside_of_groups_cannot_report_itself() -> None:
    """A container writes its region."""
    pod = bound("p")
    assert space_reports.reports({(pod.uid, MAIN): 1}, (pod,), 16) == []


def test_processes_that_have_ended_do_not_count() -> None:
    data = bytearray(region.new().ljust(region.SIZE, b"\0"))
    for slot, (pid, is_outside) in enumerate(((10, 1), (11, 0), (12, 1), (0, 1))):
        at = region.SLOTS_AT + slot * SLOT
        data[at : at + 4], data[at + 40 : at + 44] = pid.to_bytes(4, "little"), is_outside.to_bytes(4, "little")
    assert region.outside_group(bytes(data)) == 2
    assert region.outside_group(bytes(data), [2]) == 1
