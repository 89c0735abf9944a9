"""The nodes that can take more since a moment ago."""

from extender.effects import recent_nodes
from extender.effects.recent_nodes import RecentNodes
from vgpu.domain.identifiers import NodeName


def test_the_latest_come_first_and_old_ones_are_left_out() -> None:
    now = 0.0
    nodes = RecentNodes(lambda: now)
    for name in ("a", "b", "a", "c"):
        now += 1
        nodes.add(NodeName(name))
    assert nodes.names() == ["c", "a", "b"]
    now = 2 + recent_nodes.WITHIN_S + 0.5
    assert nodes.names() == ["c", "a"]


def test_of_many_the_latest_are_kept() -> None:
    nodes = RecentNodes(lambda: 0.0)
    for n in range(recent_nodes.MAX_NODES + 3):
        nodes.add(NodeName(str(n)))
    assert nodes.names() == [str(n) for n in reversed(range(3, recent_nodes.MAX_NODES + 3))]
