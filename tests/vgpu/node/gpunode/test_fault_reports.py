"""Owners of the members of a group are told when the group's MPS server has faulted."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.identifiers import Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode import fault_reports
from vgpu.node.gpunode.fault_reports import TOLD_S
from vgpu.node.gpunode.group_faults import GroupFaults
from vgpu.node.space import directories
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

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


def test_a_state_directory_without_groups_has_no_faults(tmp_path: Path, state: Path) -> None:
    for home in (state, tmp_path / ("long" * 30)):
        groups = directories.below_state(home)
        assert fault_reports.faulted(groups, groups.faults() if groups else {}, (), 0) == frozenset()
