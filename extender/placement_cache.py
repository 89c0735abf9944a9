"""Caches where a request would be placed on each node, for as long as the node's state is unchanged.

A crowd of equal pods asks about every node, and each binding changes one node only. A cached placement is valid for the
very `NodeState` object that it was computed from: `Cluster.state` makes a new object whenever the node changes.
"""

from collections import OrderedDict
from typing import Final

from extender.verdict import Placement
from vgpu.placement import choose
from vgpu.policy import PackingPolicy
from vgpu.request import PodRequest
from vgpu.share import NodeState

MAX_REQUESTS: Final = 64
MAX_NODES: Final = 20_000  # names of nodes that came and went must not pile up


class PlacementCache:
    """The placements of the most recent requests, by node; of nodes that are gone until there are very many."""

    def __init__(self, max_requests: int = MAX_REQUESTS) -> None:
        self._max_requests = max_requests
        self._placements: OrderedDict[tuple[PodRequest, PackingPolicy], dict[str, tuple[NodeState, Placement]]]
        self._placements = OrderedDict()

    def for_request(self, request: PodRequest, policy: PackingPolicy) -> "RequestPlacements":
        """Return a request's placements; beyond the limit the least recently used request is evicted."""
        key = (request, policy)
        placements = self._placements.setdefault(key, {})
        self._placements.move_to_end(key)
        if len(self._placements) > self._max_requests:
            self._placements.popitem(last=False)
        return RequestPlacements(request, policy, placements)


class RequestPlacements:
    """One request's placements under one policy."""

    def __init__(
        self, request: PodRequest, policy: PackingPolicy, placements: dict[str, tuple[NodeState, Placement]]
    ) -> None:
        self._request = request
        self._policy = policy
        self._placements = placements

    def on(self, state: NodeState) -> Placement:
        """Return where the request is placed on a node in this state, or why it cannot be."""
        cached = self._placements.get(state.name)
        if cached is not None and cached[0] is state:
            return cached[1]
        placement = choose.place(self._request, state, self._policy)
        if len(self._placements) > MAX_NODES:
            self._placements.clear()
        self._placements[state.name] = (state, placement)
        return placement
