"""PreStartContainer of members of a group in space: what is waited for, what is refused, what the container finds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from simgpu.build import ROOT
from tests import own_mounts
from tests.deviceplugin.plugin_parts import IDS, PluginParts, share
from tests.strategies import container
from tests.vgpu.node.builders import bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import Limits, SpaceMembership
from vgpu.domain.grants.assignment_trust import DistrustReason
from vgpu.domain.identifiers import Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.refusal import NodeReason
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories
from vgpu.node.space.membership import READY_S

GROUP = SpaceGroup(Namespace("team"), "models")
ON_CARD = GroupOnCard(uuid(0), GROUP.directory)
SPACE = SpaceOptions(GROUP, 50)


def member(name: str = "p", cores: int = 10, space: SpaceOptions = SPACE) -> BoundPod:
    """A member of a group of another namespace than the pod's, whose name the tests know."""
    return replace(share(name, cores), space=space)


@pytest.fixture
def state() -> Iterator[Path]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder:
        yield Path(folder)


@pytest.fixture
def here(state: Path) -> PluginParts:
    return PluginParts(state)


def directories(parts: PluginParts) -> SpaceDirectories:
    return SpaceDirectories(parts.files.state / "space")


def written(parts: PluginParts, allocation: str) -> Limits:
    return limits.decode(parts.files.limits(allocation).read_bytes())


async def test_a_member_is_refused_after_ten_seconds_without_a_daemon_and_its_group_stays_wanted(
    here: PluginParts,
) -> None:
    pod = member()
    here.pods.upsert(pod)
    allocated = here.allocate(IDS, pod)
    here.set_holder(pod, IDS)
    refusal = await here.prover.prove(names.SLICE, IDS)
    assert refusal is not None
    assert refusal.reason is NodeReason.SPACE_NOT_READY
    assert "no MPS daemon serves group team/models" in refusal.detail
    assert READY_S <= here.now < READY_S + 1
    assert here.reported == [(pod.uid, "SpaceNotReady")]
    assert directories(here).members(ON_CARD) == {allocated.id}


async def test_a_members_limits_name_its_group_and_take_turns_as_burst_for_an_older_library(here: PluginParts) -> None:
    pod = member(cores=10)
    here.pods.upsert(pod)
    allocated = here.allocate(IDS, pod)
    here.set_holder(pod, IDS)
    await here.prove()
    found = written(here, allocated.id)
    assert found.compute_policy is ComputePolicy.BURST
    assert found.space == SpaceMembership(GROUP.fingerprint, 50)
    assert here.enforced_limits(allocated) == [(uuid(0), 10)]


async def test_a_container_outside_of_space_waits_for_nothing(here: PluginParts) -> None:
    pod = share("p", 10)
    here.pods.upsert(pod)
    allocated = here.allocate(IDS, pod)
    here.set_holder(pod, IDS)
    assert await here.prove() == ""
    assert here.now == 0
    assert written(here, allocated.id).space is None
    assert list(here.files.space(allocated.id).iterdir()) == []
    assert not (here.files.state / "space").exists()


async def test_a_pod_is_a_member_by_its_annotations(here: PluginParts) -> None:
    annotations = {names.COMPUTE_POLICY: "space", names.SPACE_GROUP: "models"}
    pod = bound("p", container(gpu_mem=1024, gpu_cores=10), annotations=annotations)
    here.pods.upsert(pod)
    allocated = here.allocate(IDS, pod)
    here.set_holder(pod, IDS)
    assert await here.prove() == NodeReason.SPACE_NOT_READY
    of = GroupOnCard(uuid(0), SpaceGroup(pod.namespace, "models").directory)
    assert directories(here).members(of) == {allocated.id}
    assert (here.files.allocations / allocated.id / "space-group").read_text() == str(
        SpaceGroup(pod.namespace, "models")
    )


async def test_a_member_with_several_cards_is_refused(here: PluginParts) -> None:
    ids = slices(0, 0, 1) | slices(1, 0, 1)
    annotations = {names.COMPUTE_POLICY: "space"}
    pod = bound("p", container(gpu_mem=1024, gpu=2), gpus={"main": (0, 1)}, annotations=annotations)
    here.pods.upsert(pod)
    here.allocate(ids, pod)
    here.set_holder(pod, ids)
    assert await here.prove(ids) == DistrustReason.INVALID_REQUEST
    assert not (here.files.state / "space").exists()


async def test_a_state_directory_that_is_too_long_for_sockets_is_refused_by_name(tmp_path: Path) -> None:
    parts = PluginParts(tmp_path / ("long" * 20))
    pod = member()
    parts.pods.upsert(pod)
    parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    refusal = await parts.prover.prove(names.SLICE, IDS)
    assert refusal is not None
    assert refusal.reason is NodeReason.FILES_FAILED
    assert "too long for sockets" in refusal.detail
    parts.groups.keep([])


async def test_members_whose_allocation_is_gone_leave_their_groups(here: PluginParts) -> None:
    found = directories(here)
    for allocation in ("gone", "here"):
        found.add_member(ON_CARD, allocation)
    here.groups.keep(["here"])
    assert found.members(ON_CARD) == {"here"}


MOUNTED = """
import asyncio, sys
from pathlib import Path
from tests.deviceplugin.plugin_parts import IDS, PluginParts, share
from tests.deviceplugin.space.test_members import ON_CARD, directories, member

state = Path(sys.argv[1])
parts = PluginParts(state)
space = directories(parts)
space.make(ON_CARD)
(space.pipe(ON_CARD) / "control").touch()

def serve_from(seconds):
    slept = parts._slept
    async def sleep(length):
        await slept(length)
        space.set_ready(ON_CARD, is_ready=parts.now >= seconds)
    parts.groups._sleep = sleep

async def prove():
    parts.pods.upsert(pod)
    return await parts.prove()

pod = member()
allocated = parts.allocate(IDS, pod)
parts.set_holder(pod, IDS)
serve_from(3)
assert asyncio.run(prove()) == ""
assert 3 <= parts.now < 4, parts.now
path = parts.files.space(allocated.id)
assert [found.name for found in path.iterdir()] == ["control"]

def mounts():
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(path) in line]

assert len(mounts()) == 1
assert asyncio.run(prove()) == ""  # the container starts again
assert len(mounts()) == 1
"""


def run_in_own_mounts(state: Path, script: str) -> None:
    """Run a script as root, in a mount namespace of its own; `state` is a mount there."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    command = own_mounts.command(own_mounts.SHARED, state, (sys.executable, "-c", MOUNTED + script, str(state)))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.heavy
def test_a_members_path_leads_to_its_groups_directory_once_a_daemon_serves_it(state: Path) -> None:
    run_in_own_mounts(state, "")


@pytest.mark.heavy
def test_what_is_removed_with_an_allocation_is_not_its_groups_directory(state: Path) -> None:
    run_in_own_mounts(
        state,
        """
parts.files.remove(allocated.id)
assert not path.exists() and mounts() == []
assert (space.pipe(ON_CARD) / "control").exists()
""",
    )


@pytest.mark.heavy
def test_a_container_that_is_no_member_any_more_finds_nothing(state: Path) -> None:
    run_in_own_mounts(
        state,
        """
parts.files.prepare(allocated.id)
assert list(path.iterdir()) == [] and mounts() == []
assert (space.pipe(ON_CARD) / "control").exists()
""",
    )
