"""Members of a group in space share a simulated card with other containers by means of the real arbiter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from limiter import launch
from limiter.arbitration import IN_SPACE
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.arbiter.conftest import Container as Folder
from tests.arbiter.conftest import Node, built_arbiter, idle_node, until
from tests.limiter.conftest import MIB, Container
from tests.limiter.fake_arbiter import Arbiter
from tests.simgpu import mps_daemon
from tests.simgpu.mps_daemon import MpsDaemon
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import Namespace

__all__ = ["built_arbiter", "idle_node"]  # fixtures

GROUP = SpaceGroup(Namespace("team"), "models")
GIB = 1 << 30
ATTEMPTS = 4


@dataclass
class SpaceTenants:
    """Containers of one card with its arbiter, and the MPS daemon of a group."""

    world: World
    node: Node
    daemon: MpsDaemon

    def add(self, cores: int, *, is_member: bool) -> ProbeSession:
        """Adds a container with a process."""
        space = SpaceMembership(GROUP.fingerprint, None) if is_member else None
        entry = CardLimit(self.world.cards[0].uuid, 4 * GIB, cores)
        folder: Folder = self.node.add(Limits((entry,), ComputePolicy.BURST, space=space))
        until(folder.socket.exists)
        env = {**launch.variables(folder.folder, {}), "VGPU_ARBITER_SOCKET": str(folder.socket)}
        session = self.world.session(**{**env, "VGPU_SPACE_DIRECTORY": str(self.daemon.directory)})
        assert session("start()") == 0
        return session


@pytest.fixture
def tenants(world: World, idle_node: Node, tmp_path: Path) -> Iterator[SpaceTenants]:
    idle_node.start()
    yield SpaceTenants(world, idle_node, MpsDaemon(world, tmp_path / "group"))
    mps_daemon.end_all(world)


def shares(sessions: list[ProbeSession], kernel: str) -> list[float]:
    """Kernels' time of each session in 1.5 s, all at once, as a part of that time; after 0.8 s that do not count."""
    for session in sessions:
        session.tell(f"[launches.feed_kernel({kernel!r}, 500, 0.8), launches.feed_kernel({kernel!r}, 500, 1.5)][1]")
    return [float(session.answer()) for session in sessions]


@pytest.mark.slow
def test_members_work_at_the_same_moment_in_their_groups_turns(tenants: SpaceTenants) -> None:
    """Kernels that fill a quarter of the card: together the members get more time than the card has."""
    members = [tenants.add(20, is_member=True) for _ in range(3)]
    outside = tenants.add(40, is_member=False)
    seen = []
    for _ in range(ATTEMPTS):  # the machine's processors may be busy
        *together, alone = shares([*members, outside], "fill25")
        seen.append((together, alone))
        if sum(together) > 1.1 and min(together) > 0.25 and alone > 0.28:
            return
    pytest.fail(f"shares: {seen}")


@pytest.mark.slow
def test_a_group_that_is_alone_runs_free(tenants: SpaceTenants) -> None:
    members = [tenants.add(20, is_member=True) for _ in range(3)]
    seen = []
    for _ in range(ATTEMPTS):
        seen.append(shares(members, "fill25"))
        if min(seen[-1]) > 0.85:
            return
    pytest.fail(f"shares: {seen}")


@pytest.mark.parametrize("has_daemon", [True, False])
def test_a_process_says_to_the_arbiter_whether_it_is_a_client_of_its_groups_server(
    make_container: Callable[..., Container], world: World, tmp_path: Path, has_daemon: bool
) -> None:
    directory = tmp_path / "group"
    if has_daemon:
        MpsDaemon(world, directory)
    container = make_container()
    container.limit(
        Limits((CardLimit(ANY_GPU, 64 * MIB, 10),), ComputePolicy.BURST, space=SpaceMembership(GROUP.fingerprint, None))
    )
    arbiter = Arbiter(tmp_path / "socket", contended=False)
    try:
        session = container.session(VGPU_ARBITER_SOCKET=str(tmp_path / "socket"), VGPU_SPACE_DIRECTORY=str(directory))
        assert session("start()") == 0
        session("kernels.launch(kernels.load('spin_10'))")
        until(lambda: arbiter.clients)
        assert bool(arbiter.clients[0].abilities & IN_SPACE) == has_daemon
    finally:
        arbiter.close()
        mps_daemon.end_all(world)
