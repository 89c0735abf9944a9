"""Findings count when two looks show them; a crowd in one namespace hides none in another."""

from dataclasses import replace

from tests.vgpu.node.builders import bound, uuid
from vgpu.domain.identifiers import Namespace
from vgpu.node.processes.findings import FindingKind, Key, ProcessFinding
from vgpu.node.processes.sightings import MAX_FINDINGS, Sightings


def found(namespace: str, *numbers: int) -> dict[Key, ProcessFinding]:
    """Uses without a share: one of each numbered pod of a namespace."""
    pods = [replace(bound(f"{namespace}-{number}"), namespace=Namespace(namespace)) for number in numbers]
    return {
        (FindingKind.NO_SHARE, uuid(0), pod.uid): ProcessFinding(FindingKind.NO_SHARE, uuid(0), 100, "python", pod)
        for pod in pods
    }


def namespaces(sightings: Sightings) -> set[str]:
    return {finding.pod.namespace for finding in sightings.confirmed.values() if finding.pod}


def test_a_finding_counts_at_the_second_look() -> None:
    sightings = Sightings()
    assert sightings.take(found("a", 1))
    assert not sightings.confirmed
    assert not sightings.take(found("a", 1))
    assert len(sightings.confirmed) == 1


def test_a_crowd_in_one_namespace_hides_no_finding_in_another() -> None:
    sightings = Sightings()
    crowd = found("crowd", *range(50))
    for _ in range(2):
        sightings.take(crowd)
    assert (len(sightings.confirmed), sightings.more) == (MAX_FINDINGS, 50 - MAX_FINDINGS)
    host = {(FindingKind.HOST_PROCESS, uuid(0), "7"): ProcessFinding(FindingKind.HOST_PROCESS, uuid(0), 7, "miner")}
    for _ in range(2):
        sightings.take(crowd | found("late", 1, 2) | host)
    assert namespaces(sightings) == {"crowd", "late"}
    assert host.keys() < sightings.confirmed.keys()
    assert found("late", 1, 2).keys() < sightings.confirmed.keys()
    assert (len(sightings.confirmed), sightings.more) == (MAX_FINDINGS, 53 - MAX_FINDINGS)


def test_findings_that_end_make_room_at_once() -> None:
    sightings = Sightings()
    for _ in range(2):
        sightings.take(found("crowd", *range(MAX_FINDINGS + 1)))
    assert sightings.more == 1
    for _ in range(2):
        sightings.take(found("crowd", *range(1, MAX_FINDINGS + 1)))
    assert (len(sightings.confirmed), sightings.more) == (MAX_FINDINGS, 0)
