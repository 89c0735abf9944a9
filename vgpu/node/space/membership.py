"""Makes containers that are about to start members of their group, and has the group's MPS daemon running by then.

Allocate names a directory of the allocation's own, because it does not know for certain which container it serves.
PreStartContainer, which proves that, lets the directory lead to the group's pipe directory, before the container is
created: what a container has mounted cannot be changed later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.identifiers import CardUuid
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.space import directories
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

READY_S: Final = 10.0  # within the kubelet's 30 s for PreStartContainer, which it then calls again
_LOOK_S: Final = 0.05


class GroupMembership:
    """Which allocations of this node are members of groups."""

    def __init__(
        self,
        files: StateFiles,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` is monotonic, in seconds."""
        self._files, self._clock, self._sleep = files, clock, sleep

    async def join(self, allocation: str, card: CardUuid, group: SpaceGroup) -> bool:
        """Make an allocation a member of a group on a card; False where no daemon serves it within READY_S.

        The allocation stays a member then, so that the next call finds the daemon. Raises OSError, and StateUnusable
        where the state directory's path is too long for sockets.
        """
        of = GroupOnCard(card, group.directory)
        groups = SpaceDirectories(self._files.state / "space")
        self._files.name_group(allocation, str(group))
        groups.add_member(of, allocation)
        until = self._clock() + READY_S
        while not groups.is_ready(of):
            if self._clock() >= until:
                return False
            await self._sleep(_LOOK_S)
        self._files.lead_space_to(allocation, groups.pipe(of))
        return True

    def keep(self, allocations: Collection[str]) -> None:
        """Let only these allocations be members: the others are gone. Raises OSError."""
        groups = directories.below_state(self._files.state)
        if groups is not None:  # else nothing has ever joined
            groups.keep_members(allocations)
