"""Nodes that can take more since a moment ago, the latest first."""

from collections.abc import Callable
from typing import Final

from vgpu.domain.identifiers import NodeName

WITHIN_S: Final = 10.0  # from a refusal until its pod is seen to wait: a write of kube-scheduler's on a busy cluster
MAX_NODES: Final = 64  # the latest: a pod needs one of them


class RecentNodes:
    """The nodes that were added in the last `WITHIN_S`, at most `MAX_NODES`. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._added: dict[NodeName, float] = {}  # the latest last

    def add(self, node: NodeName) -> None:
        """Take a node that can take more than before."""
        self._added.pop(node, None)
        self._added[node] = self._clock()
        if len(self._added) > MAX_NODES:
            del self._added[next(iter(self._added))]

    def names(self) -> list[NodeName]:
        """Return the names of the nodes."""
        oldest = self._clock() - WITHIN_S
        return [node for node, added in reversed(self._added.items()) if added >= oldest]
