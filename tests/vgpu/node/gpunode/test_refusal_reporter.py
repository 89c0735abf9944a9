"""Refused pods are reported once, and a crowd of one namespace hides those of no other."""

from dataclasses import replace

from tests.vgpu.node.builders import bound
from vgpu.domain.identifiers import Namespace, PodUid
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason
from vgpu.node.gpunode.refusal_reporter import MAX_REPORTED, RefusalReporter

REFUSAL = ContainerRefusal(NodeReason.FILES_FAILED, "the disk is full")


class Node:
    """The pods of a node, and their reporter."""

    def __init__(self) -> None:
        self.known = dict[PodUid, BoundPod]()
        self.changes = 0
        self.reporter = RefusalReporter(lambda uid: uid in self.known)
        self.reporter.on_change = self._changed

    def _changed(self) -> None:
        self.changes += 1

    def refuse(self, namespace: str, *names: str) -> None:
        for name in names:
            pod = replace(bound(f"{namespace}-{name}"), namespace=Namespace(namespace))
            self.known[pod.uid] = pod
            self.reporter.refused(pod, REFUSAL)

    def told(self) -> list[str]:
        return [report["pod"] for report in self.reporter.refusals()]


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def test_a_refusal_is_reported_once_until_its_pod_is_gone() -> None:
    node = Node()
    node.refuse("a", "p0")
    node.refuse("a", "p0")
    assert (node.told(), node.changes) == (["a/a-p0"], 1)
    node.known.clear()
    assert node.told() == []


def test_a_crowd_of_one_namespace_hides_no_refusal_of_another() -> None:
    node = Node()
    node.refuse("quiet", "p0", "p1")
    node.refuse("crowd", *names(200))
    node.refuse("late", "p0")
    told = node.told()
    assert len(told) == MAX_REPORTED
    assert {"quiet/quiet-p0", "quiet/quiet-p1", "late/late-p0"} < set(told)


def test_what_is_told_of_a_crowd_stays_while_its_refusals_are_repeated() -> None:
    node = Node()
    node.refuse("crowd", *names(100))
    told, changes = node.told(), node.changes
    node.refuse("crowd", *reversed(names(100)))
    assert (node.told(), node.changes) == (told, changes)


def test_those_that_had_no_room_are_told_when_others_are_gone() -> None:
    node = Node()
    node.refuse("crowd", *names(MAX_REPORTED + 1))
    assert f"crowd/crowd-p{MAX_REPORTED}" not in node.told()
    node.known.pop(next(iter(node.known)))
    assert f"crowd/crowd-p{MAX_REPORTED}" in node.told()
