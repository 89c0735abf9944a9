"""Owners of the members of a group are told when the group's MPS server has faulted."""

import os
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.formats import region
from vgpu.domain.identifiers import Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode import fault_reports
from vgpu.node.gpunode.fault_reports import TOLD_S
from vgpu.node.gpunode.group_faults import GroupFaults
from vgpu.node.space import directories, seen_faults
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories
from vgpu.node.space.seen_faults import SeenFault

GROUP = SpaceGroup(Namespace("default"), "models")
OF, OTHER = GroupOnCard(uuid(0), GROUP.directory), GroupOnCard(uuid(0), "0" * 16)


def member(name: str) -> BoundPod:
    return replace(bound(name), space=SpaceOptions(GROUP))


@pytest.fixture
def state() -> Iterator[Path]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder:
        yield Path(folder)


def test_each_member_of_the_faulted_group_is_told_once_and_nobody_else(state: Path) -> None:
    pods = (member("p"), member("q"), member("elsewhere"), bound("plain"))
    held = [allocation(slices(0, n), pod, sequence=n) for n, pod in enumerate(pods)]
    spaces, now, changes = SpaceDirectories(state / "space"), time.time(), [0]
    for number, of in enumerate((OF, OF, OTHER)):
        spaces.add_member(of, held[number].id)
    faults = GroupFaults(state, lambda: now, lambda: held, lambda: pods)
    faults.on_change = lambda: changes.append(1)
    faults.look()
    assert faults.reports(16) == []
    spaces.note_fault(OF)
    faults.look()
    faults.look()
    assert sum(changes) == 1
    told = faults.reports(16)
    assert [(report["pod"], report["reason"], report["evict"]) for report in told] == [
        ("default/p", names.SPACE_SERVER_FAULTED, False),
        ("default/q", names.SPACE_SERVER_FAULTED, False),
    ]
    assert f"group default/models on card {uuid(0)} has faulted" in told[0]["message"]
    assert len(faults.reports(1)) == 1
    now += TOLD_S + 1
    faults.look()
    assert faults.reports(16) == []


def test_each_fault_is_counted_once_and_none_of_before_the_start(state: Path) -> None:
    spaces, now = SpaceDirectories(state / "space"), time.time()
    spaces.note_fault(OTHER)
    faults = GroupFaults(state, lambda: now + 1, tuple, tuple)
    faults.look()
    assert faults.counts == {OTHER: 0}
    for at in (now + 2, now + 3):
        spaces.note_fault(OF)
        os.utime(state / "space" / "faults" / str(OF), (at, at))
        faults.look()
        faults.look()
    assert faults.counts == {OF: 2, OTHER: 0}
    spaces.forget_fault(OF)
    faults.look()
    assert faults.counts == {OTHER: 0}


def test_a_fault_that_only_clients_have_seen_is_told_to_each_member_and_counted_once(state: Path) -> None:
    """Where all clients of a faulted server exit at once, its daemon has forgotten the fault when it is asked."""
    pods = (member("p"), member("q"))
    held = [allocation(slices(0, n), pod, sequence=n) for n, pod in enumerate(pods)]
    spaces, now, seen = SpaceDirectories(state / "space"), time.time(), dict[str, SeenFault]()
    for found in held:
        spaces.add_member(OF, found.id)
    faults = GroupFaults(state, lambda: now, lambda: held, lambda: pods, seen.get)
    faults.look()
    begun, hit, late = now, held[0].id, held[1].id
    now += 10
    seen[hit] = SeenFault(since=begun, at=now)
    faults.look()
    assert [report["pod"] for report in faults.reports(16)] == ["default/p", "default/q"]
    spaces.note_fault(OF)  # the supervisor has asked a moment later
    os.utime(state / "space" / "faults" / str(OF), (now + 1, now + 1))
    now += 20
    seen[late] = SeenFault(since=begun + 5, at=now)  # a client of before the fault sees it late
    del seen[hit]  # the container has started again
    faults.look()
    assert (faults.counts, len(faults.reports(16))) == ({OF: 1}, 2)
    now += TOLD_S
    faults.look()
    assert faults.reports(16) == []
    seen[hit] = SeenFault(since=begun + 15, at=now)  # of the server that came after the fault
    faults.look()
    assert (faults.counts, len(faults.reports(16))) == ({OF: 2}, 2)


@pytest.mark.parametrize(
    ("times", "seen"),
    [
        ((0, 0), None),
        ((5, 4), None),
        ((10**9, 2 * 10**9), (941, 942)),
        ((10**9, 2**64 - 1), (941, 1000)),
        ((2**64 - 1, 2**64 - 1), (1000, 1000)),
    ],
)
def test_a_region_may_say_anything_and_no_fault_is_later_than_now(
    times: tuple[int, int], seen: tuple[float, float] | None
) -> None:
    header = region.new()[:120] + struct.pack("<QQ", *times) + bytes(120)
    found = seen_faults.seen_in(header, lambda: 1000.0, lambda: 60.0)
    assert (found and (found.since, found.at)) == seen
    for wrong in (b"", b"x" * 256, header[:200]):
        assert seen_faults.seen_in(wrong, lambda: 1000.0, lambda: 60.0) is None


def test_a_state_directory_without_groups_has_no_faults(tmp_path: Path, state: Path) -> None:
    for home in (state, tmp_path / ("long" * 30)):
        groups = directories.below_state(home)
        assert fault_reports.faulted(groups, groups.faults() if groups else {}, (), 0) == frozenset()
