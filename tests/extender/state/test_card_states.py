"""The state of a card that has not changed stays the same object; every other state is made anew."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.state import card_states
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import Clock
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.share import NO_USAGE, CardState, Usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName

N1 = NodeName("n1")

Seen = tuple[list[Card], int, dict[CardUuid, Usage]]

CARDS = tuple(strategies.card(n, 8192) for n in range(3))
USAGES = st.dictionaries(st.sampled_from([card.uuid for card in CARDS]), st.builds(Usage, slices=st.integers(0, 2)))
SEEN = st.tuples(
    st.lists(st.sampled_from([*CARDS, replace(CARDS[0], cordoned=True)]), max_size=3),
    st.sampled_from([256, 512]),
    USAGES,
)


@given(SEEN, SEEN)
def test_states_are_those_of_the_cards_and_usages_now(one: Seen, two: Seen) -> None:
    before = card_states.of_cards(*one)
    cards, slice_mib, taken = two
    expected = tuple(CardState(card, slice_mib, taken.get(card.uuid, NO_USAGE)) for card in cards)
    assert card_states.of_cards(cards, slice_mib, taken, before) == expected


def test_a_pod_on_one_card_leaves_the_states_of_the_others_alone() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(GpuNode(Node(N1, 256, CARDS), "i", "2026-01-01T00:00:00Z", 1))
    before = cluster.states.of(N1).cards
    pod = PodReader().decoded(strategies.admit(strategies.pod(strategies.container(gpu_mem=256), node="n1")))
    cluster.updates.upsert_pod(
        structs.replace(pod, assignment=Assignment({ContainerName("main"): (Grant(CardUuid("GPU-1"), 256),)}))
    )
    after = cluster.states.of(N1).cards
    assert [known is now for known, now in zip(before, after, strict=True)] == [True, False, True]
    assert after[1].usage.slices == 1


def test_the_states_of_a_node_that_is_gone_are_forgotten() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(GpuNode(Node(N1, 256, CARDS), "i", "2026-01-01T00:00:00Z", 1))
    cluster.states.of(N1)
    cluster.updates.delete_gpunodes(N1)
    assert not cluster.states._states
    assert not cluster.states._old
