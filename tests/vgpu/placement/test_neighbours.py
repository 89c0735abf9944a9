"""Members of a group in space attract each other: what their cards add to what a pod asks for."""

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request, space
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName
from vgpu.placement import choose, neighbours

CARDS = [CardUuid(f"GPU-{n}") for n in range(4)]
TEAM = Namespace("team")
MEMBERS = st.lists(st.sampled_from(CARDS), max_size=6) | st.integers(46, 50).map(lambda count: CARDS[:1] * count)
POLICIES = st.sampled_from(list(PackingPolicy))


def asked(**annotations: str) -> PodRequest:
    named = {f"{names.DOMAIN}/{name}": value for name, value in annotations.items()}
    manifest = strategies.pod(strategies.container(gpu_mem=1024), annotations={names.COMPUTE_POLICY: "space"} | named)
    parsed = request.parse(manifest)
    assert parsed.request is not None
    assert not parsed.problems
    return parsed.request


def node(free_mib: list[int]) -> NodeState:
    """A node with cards of 4 GiB, which serve groups in space."""
    cards = tuple(Card(uuid, n, "H100", 4096, serves_space=True) for n, uuid in enumerate(CARDS))
    taken = {uuid: Usage((4096 - free) // 256, 4096 - free, 0, 1) for uuid, free in zip(CARDS, free_mib, strict=True)}
    return NodeState.of(Node(NodeName("n"), 256, cards), taken, {})


FREE = st.lists(st.sampled_from([0, 512, 1024, 4096]), min_size=4, max_size=4)


def placed(wanted: PodRequest | None, state: NodeState, policy: PackingPolicy) -> CardUuid | None:
    found = choose.place(wanted, state, policy) if wanted else None
    return next(iter(found.gpus())) if isinstance(found, Assignment) else None


@given(MEMBERS, FREE, POLICIES)
def test_a_member_is_beside_its_group_wherever_it_fits_there(
    members: list[CardUuid], free: list[int], policy: PackingPolicy
) -> None:
    wanted, state = neighbours.required(asked(), {}, (), members), node(free)
    preferred = neighbours.preferred(wanted, {}, (), members)
    card = placed(preferred, state, policy) or placed(wanted, state, policy)
    open_cards = {uuid for uuid, mib in zip(CARDS, free, strict=True) if mib >= 1024 and members.count(uuid) < 48}
    assert (card in open_cards) if open_cards else card is None
    if open_cards & set(members):
        assert card in members


@given(MEMBERS)
def test_no_member_is_beside_48_others(members: list[CardUuid]) -> None:
    selector = neighbours.required(asked(), {}, (), members).options.selector
    assert selector.full_groups == {card for card in members if members.count(card) >= space.MAX_CLIENTS}


@given(MEMBERS)
def test_what_is_preferred_is_never_more_than_what_is_allowed(members: list[CardUuid]) -> None:
    wanted = neighbours.required(asked(), {}, (), members)
    preferred = neighbours.preferred(wanted, {}, (), members)
    if preferred is None:
        assert not set(members) - wanted.options.selector.full_groups
        return
    assert preferred.options.selector.full_groups == wanted.options.selector.full_groups
    assert preferred.options.selector.beside == frozenset(members) - wanted.options.selector.full_groups


def test_the_pods_own_preference_comes_before_its_group() -> None:
    parsed = request.parse(strategies.pod(strategies.container(gpu_mem=256))).request
    assert parsed is not None
    held = choose.place(parsed, node([0, 0, 4096, 0]), PackingPolicy.BINPACK)
    assert isinstance(held, Assignment)
    online = neighbours.tenant(TEAM, {"class": "online"}, parsed, held)
    wanted = asked(**{"preferred-gpu-affinity": "class=online"})
    for members, beside in (([], CARDS[2:3]), (CARDS[:1], CARDS[2:3]), (CARDS[1:3], CARDS[2:3])):
        preferred = neighbours.preferred(wanted, {}, (online,), members)
        assert preferred is not None
        assert preferred.options.selector.beside == frozenset(beside)


def test_a_group_of_the_cluster_has_members_in_all_namespaces() -> None:
    wanted = asked(**{"space-group": "shared/models"})
    held = choose.place(wanted, node([4096] * 4), PackingPolicy.BINPACK)
    assert isinstance(held, Assignment)
    tenants = [neighbours.tenant(Namespace(name), {}, wanted, held) for name in ("a", "b")]
    (card,) = held.gpus()
    assert wanted.options.space is not None
    assert neighbours.members_of(wanted.options.space.group(TEAM), tenants) == [card, card]
    assert neighbours.members_of(SpaceGroup(TEAM, "models"), tenants) == []
    assert neighbours.members_of(None, tenants) == []
