"""The room that is kept free for a gang is what it would take if the pods on the least taken nodes had ended."""

from dataclasses import replace

from extender.gangs import room_to_hold
from extender.state.held_room import Usages
from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid
from vgpu.placement.gang_attempt import Member, Steps
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView


def asked(**amounts: int) -> PodRequest:
    parsed = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert parsed is not None
    return parsed


def view(name: str, pods: int) -> NodeView:
    """A node of two cards of 2 GiB; `pods` pods of 512 MiB are spread over both cards."""
    cards = (replace(strategies.card(n), uuid=CardUuid(f"GPU-{name}-{n}")) for n in range(2))
    offered = {names.SLICE: 16, names.CARD: 0 if pods else 2}  # cards that are shared are not offered whole
    found = NodeView(NodeName(name), strategies.node_state(*cards, name=name), None, offered)
    for _ in range(pods):
        placed = found.place(asked(gpu_mem=512), PackingPolicy.SPREAD)
        assert isinstance(placed, Assignment)
        found = found.with_pod(asked(gpu_mem=512), placed)
    return found


def chosen(steps: Steps[dict[str, Usages] | None]) -> dict[str, Usages] | None:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: dict[str, Usages] | None = end.value
            return found


def target(views: list[NodeView], count: int, **amounts: int) -> dict[str, Usages] | None:
    members = [Member(PodUid(f"m{n}"), asked(**amounts)) for n in range(count)]
    return chosen(room_to_hold.target(members, views, DefaultPolicies()))  # type: ignore[arg-type]


def test_the_nodes_of_which_least_is_taken_are_chosen_and_no_more_than_have_room() -> None:
    views = [view("n1", 8), view("n2", 2), view("n3", 5), view("n4", 3)]
    assert (target(views, 2, gpu=1) or {}).keys() == {"n2"}
    assert (target(views, 4, gpu=1) or {}).keys() == {"n2", "n4"}
    assert (target(views, 8, gpu=1) or {}).keys() == {"n1", "n2", "n3", "n4"}


def test_only_what_the_gang_needs_of_a_card_is_kept() -> None:
    found = target([view("n1", 8)], 2, gpu_mem=512)
    assert found is not None
    (usages,) = found.values()
    assert sum(usages.values(), Usage()).slices == 4


def test_a_gang_that_fits_no_empty_cluster_has_no_target() -> None:
    assert target([view("n1", 0), view("n2", 8)], 5, gpu=1) is None
    assert target([view("n1", 0)], 1, gpu_mem=4096) is None
    assert target([], 1, gpu=1) is None
