"""Racks: nodes by where the job's other pods are."""

from vgpu.domain.asks.policy import RackPolicy
from vgpu.domain.identifiers import NodeName
from vgpu.placement import racks, rank

RACKS = {NodeName(node): rack for node, rack in {"a1": "a", "a2": "a", "b1": "b", "c1": "c", "x": ""}.items()}


def test_pack_prefers_the_rack_with_the_most_pods_of_the_job_and_spread_the_one_with_the_fewest() -> None:
    used = ["a", "a", "b", ""]
    assert racks.tiers(RackPolicy.PACK, RACKS, used) == {"a1": 0, "a2": 0, "b1": 1, "c1": 2, "x": 2}
    assert racks.tiers(RackPolicy.SPREAD, RACKS, used) == {"a1": 2, "a2": 2, "b1": 1, "c1": 0, "x": 3}


def test_racks_do_not_matter_without_a_policy_or_before_the_first_pod() -> None:
    assert racks.tiers(None, RACKS, ["a"]) == {}
    assert racks.tiers(RackPolicy.PACK, RACKS, []) == racks.tiers(RackPolicy.SPREAD, RACKS, [""]) == {}


def test_a_better_tier_comes_before_a_better_cost_and_the_tolerance_holds_within_a_tier() -> None:
    far, near, near_too = map(NodeName, ("far", "near", "near-too"))
    costs = {far: 0, near: 100, near_too: 105}
    tiers = {far: 1, near: 0, near_too: 0}
    assert rank.by_cost(costs, 0, tiers) == ["near", "near-too", "far"]
    equal = sorted(["near", "near-too"], key=rank.fixed_order)
    assert rank.by_cost(costs, 10, tiers) == [*equal, "far"]
    assert rank.by_cost(costs, 0)[0] == "far"
