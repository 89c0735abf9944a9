"""Caches where a request would be placed on each node, for as long as the node's state is unchanged.

A crowd of equal pods asks about every node, and each binding changes one node only. A cached placement is valid for the
very `NodeState` object that it was computed from: `NodeStates.of` makes a new object whenever the node changes.
"""

from collections import OrderedDict
from typing import Final

from extender.verbs.verdict import Placement
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import NodeState
from vgpu.placement import choose

MAX_REQUESTS: Final = 64
MAX_GRANTS: Final = 400_000  # about 200 MB; one request of 32 containers has 160,000 on 5,000 nodes
MAX_NODES: Final = 20_000  # names of nodes that came and went must not pile up


class PlacementCache:
    """The placements of the most recent requests, by node; of nodes that are gone until there are very many."""

    def __init__(self, max_requests: int = MAX_REQUESTS) -> None:
        self._max_requests = max_requests
        self._placements: OrderedDict[tuple[PodRequest, PackingPolicy], RequestPlacements] = OrderedDict()

    def for_request(self, request: PodRequest, policy: PackingPolicy) -> "RequestPlacements":
        """Return a request's placements; the least recently used requests beyond the limits are evicted."""
        key = (request, policy)
        found = self._placements.get(key)
        if found is None:
            found = self._placements[key] = RequestPlacements(request, policy)
        self._placements.move_to_end(key)
        while self._is_full():
            self._placements.popitem(last=False)
        return found

    def _is_full(self) -> bool:
        return len(self._placements) > self._max_requests or (len(self._placements) > 1 and self._grants() > MAX_GRANTS)

    def _grants(self) -> int:
        """Return the grants that the placements hold at most."""
        return sum(placement.most_grants for placement in self._placements.values())


class RequestPlacements:
    """One request's placements under one policy."""

    def __init__(self, request: PodRequest, policy: PackingPolicy) -> None:
        self._request = request
        self._policy = policy
        self._placements: dict[str, tuple[NodeState, Placement]] = {}
        self._gpus = sum(container.gpus for container in request.containers)

    @property
    def most_grants(self) -> int:
        """The grants that the placements hold at most."""
        return self._gpus * len(self._placements)

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
