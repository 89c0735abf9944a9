"""A book of gangs over a cluster, and a waker that remembers whom it was asked to wake."""

from dataclasses import dataclass, field

from extender.cluster import Cluster
from extender.gangs.book import GangBook, Times

DEADLINE_S = 30.0


@dataclass
class WakeList:
    """Whom and which nodes the waker was told."""

    woken: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)

    def wake(self, uid: str, why: str) -> None:  # noqa: ARG002 - the waker's protocol
        self.woken.append(uid)

    def changed(self, node: str) -> None:
        self.nodes.append(node)


def book(cluster: Cluster, waker: WakeList | None = None) -> GangBook:
    return GangBook(cluster, waker or WakeList(), Times(cluster.now, lambda: 0, DEADLINE_S))
