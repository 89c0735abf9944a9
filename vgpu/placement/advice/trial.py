"""One piece of advice, and how rules try theirs: at most `MAX_TRIED` nodes for each, so that the work has a bound."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName
from vgpu.placement.snapshot import NodeView

MAX_TRIED: Final = 50  # nodes for each rule

Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Advice:
    """One change after which the pod would be placed.

    Attributes:
        code: of the change.
        text: what to do.
        node: where the pod would be placed then; empty where it is needed and not enough, as the text says.
        cards: UUIDs of the cards to change; empty where the pod or the node is to be changed.
        by: whether the pod's owner or an administrator can do it.
    """

    code: str
    text: str
    node: NodeName = NO_NODE
    cards: tuple[CardUuid, ...] = ()
    by: str = "owner"


def tried(views: Sequence[NodeView], pause: Pause) -> Iterator[NodeView]:
    """Yield the nodes that a rule tries; `pause` is called before each."""
    for view in views[:MAX_TRIED]:
        pause()
        yield view


def fitting(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> NodeView | None:
    """Return a node that can take a changed request; None where none of those tried can."""
    nodes = (view for view in tried(views, pause) if isinstance(view.place(request, policy), Assignment))
    return next(nodes, None)


def with_container(request: PodRequest, container: ContainerRequest) -> PodRequest:
    """Return a request of one container with another one in its place."""
    return PodRequest((container,), request.options)
