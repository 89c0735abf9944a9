"""On which GPUNode a card counts, after any sequence of changes; the oracle decides from all GPUNodes at once."""

from hypothesis import given
from hypothesis import strategies as st

from extender.state.card_owners import CardOwners
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode
from tests.extender.conftest import Clock
from tests.strategies import card
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import CardUuid, NodeName

CARDS = [card(n) for n in range(3)]
NODES = [NodeName("a"), NodeName("b"), NodeName("c")]


def gpunode(name: str, year: int, cards: set[int], version: int = -1) -> GpuNode:
    node = Node(NodeName(name), 256, tuple(CARDS[n] for n in sorted(cards)))
    return GpuNode(node, name, f"20{year}-01-01T00:00:00Z", version)


gpunodes = st.builds(gpunode, st.sampled_from(NODES), st.integers(20, 22), st.sets(st.integers(0, 2)))


@given(st.lists(gpunodes | st.sampled_from(NODES), max_size=12))
def test_the_newest_gpunode_owns_a_card_and_the_nodes_that_change_are_named(changes: list[GpuNode | str]) -> None:
    owners = CardOwners(lambda _: (True, 0.0))
    known: dict[NodeName, GpuNode] = {}
    for change in changes:
        before = owned(owners)
        if isinstance(change, str):
            known.pop(NodeName(change), None)
            named = owners.remove(NodeName(change))
        else:
            known[change.node.name] = change
            named = owners.put(change)
        by_age = sorted(known.values(), key=lambda gpunode: (gpunode.created, gpunode.node.name))
        expected = {reported.uuid: one.node.name for one in by_age for reported in one.node.cards}
        assert owned(owners) == {(node, uuid) for uuid, node in expected.items()}
        assert {node for node, _ in before ^ owned(owners)} <= named
        assert owners.duplicates == duplicates(known, expected)


def owned(owners: CardOwners) -> set[tuple[str, str]]:
    return {(node, known.uuid) for node in NODES for known in CARDS if owners.owner(known.uuid) == node}


def duplicates(
    known: dict[NodeName, GpuNode], owner: dict[CardUuid, NodeName]
) -> dict[NodeName, dict[CardUuid, NodeName]]:
    found: dict[NodeName, dict[CardUuid, NodeName]] = {}
    for name, one in known.items():
        for uuid in (reported.uuid for reported in one.node.cards):
            if owner[uuid] != name:
                found.setdefault(name, {})[uuid] = owner[uuid]
    return found


def test_a_change_of_one_gpunode_keeps_the_states_of_the_others() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(gpunode("a", 20, {0}, 1), gpunode("b", 20, {1}, 2))
    a, b = cluster.states.of(NodeName("a")), cluster.states.of(NodeName("b"))
    cluster.updates.upsert_gpunodes(gpunode("c", 20, {2}, 3))
    cluster.updates.upsert_gpunodes(gpunode("a", 20, {0}, 1), gpunode("b", 20, {1}, 4))  # a list: only b has changed
    assert cluster.states.of(NodeName("a")) is a
    assert cluster.states.of(NodeName("b")) is not b
    cluster.updates.delete_gpunodes(NodeName("b"))
    assert cluster.states.of(NodeName("a")) is a
    cluster.updates.upsert_gpunodes(gpunode("c", 21, {0, 2}, 5))
    assert not cluster.states.of(NodeName("a")).cards[0].card.healthy
