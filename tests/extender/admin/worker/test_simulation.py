"""A simulation on the index places each pod as the simulation on node views does, which is its oracle."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.admin.worker.fleet import Fleet, Update
from extender.admin.worker.questions import Simulate
from extender.admin.worker.simulation import FleetSimulation
from tests import strategies
from tests.extender.index.test_index import MODELS, NAMES, cards, pods
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, HostRoom, NodeState, Usage
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement import room
from vgpu.placement.demand import TypicalPods
from vgpu.placement.models import Models
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.gangs import Ganged
from vgpu.placement.simulation.simulate import Wanted, simulate
from vgpu.placement.snapshot import NodeView

N0 = NodeName("n0")


@st.composite
def views(draw: st.DrawFn, name: str) -> NodeView:
    """Nodes of up to four cards, and some that are wider than the index."""
    found = draw(st.lists(cards, max_size=4)) * draw(st.sampled_from([1] * 9 + [9]))
    states = tuple(
        CardState(replace(card, uuid=CardUuid(f"GPU-{name}-{n}"), index=n), 256, draw(usages))
        for n, card in enumerate(found)
    )
    host = draw(st.sampled_from([HostRoom(), HostRoom(2000, 2048)]))
    blocked = draw(st.sampled_from([None] * 6 + [Reason.PLUGIN_AWAY, Reason.SLICE_SIZE_MISMATCH]))
    blocked = blocked if found else Reason.NO_INVENTORY
    slices = draw(st.sampled_from([4, 32, 400]))
    allocatable = {names.SLICE: slices, names.CARD: slices // 8}
    return NodeView(NodeName(name), NodeState(NodeName(name), 256, states, {}, host), blocked, allocatable)


usages = st.sampled_from([Usage(), Usage(), Usage(2, 512, 30, 1), Usage(4, 1024, 100, 1), Usage(3, 700, 0, 2)])


def learned(asked: list[Wanted]) -> DefaultPolicies:
    """Return the default policies after these pods were seen."""
    models, typical = Models(), TypicalPods()
    for model in MODELS:
        models.bit(model)
    for wanted in asked:
        typical.see(room.ask_of(wanted.request, wanted.host.cpu_milli, wanted.host.memory_mib, 256, models))
    return DefaultPolicies(demand=typical.demand(lambda _: 5000, 9000, 8), models=models)


@pytest.mark.heavy
@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(PackingPolicy))
def test_it_lands_where_the_oracle_lands(data: st.DataObject, policy: PackingPolicy) -> None:
    fleet = Fleet()
    fleet.apply(Update([data.draw(views(name)) for name in NAMES]))
    drawn = [data.draw(pods(f"u{n}")) for n in range(data.draw(st.integers(1, 5)))]
    asked = [Wanted(pod.parsed.request, pod.host) for pod in drawn if pod.parsed.request]
    defaults = replace(learned(asked), node_policy=policy)
    for _ in range(2):
        expected = simulate(asked, fleet.views.values(), defaults)
        with fleet.tried():
            found = list(FleetSimulation(fleet, defaults).land(asked, lambda: None))
            assert dict(fleet.views) == expected.views
        several = [len(wanted.request.choosers) > 1 for wanted in asked]
        for one, other, is_several in zip(found, expected.landings, several, strict=True):
            assert (one.node, one.assignment, one.nearest) == (other.node, other.assignment, other.nearest)
            assert sum(one.counts.values()) == sum(other.counts.values())
            assert is_several or dict(one.counts) == dict(other.counts)
        changed = data.draw(views(data.draw(st.sampled_from(NAMES))))
        fleet.apply(Update([changed], data.draw(st.sampled_from([(), NAMES[:1]]))))


@pytest.mark.heavy
@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_a_gang_lands_where_the_oracle_lands(data: st.DataObject, size: int, count: int) -> None:
    fleet = Fleet()
    fleet.apply(Update([data.draw(views(name)) for name in NAMES]))
    drawn = data.draw(pods("u0"))
    if drawn.parsed.request is None:
        return
    asked = [Wanted(drawn.parsed.request, drawn.host, Ganged("train", size))] * count
    defaults = learned(asked)
    expected = simulate(asked, fleet.views.values(), defaults)
    with fleet.tried():
        found = FleetSimulation(fleet, defaults).land(asked, lambda: None)
        assert dict(fleet.views) == expected.views
    for one, other in zip(found, expected.landings, strict=True):
        assert (one.node, one.assignment, one.gang) == (other.node, other.assignment, other.gang)


def wanted(**amounts: Any) -> Wanted:
    parsed = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert parsed is not None
    return Wanted(parsed)


def test_the_index_is_made_once_for_a_question_that_does_not_know_the_models_of_cards() -> None:
    fleet, states = Fleet(), [CardState(Card(CardUuid("GPU-0"), 0, "a new model", 2048), 256)]
    fleet.apply(Update([NodeView(N0, NodeState(N0, 256, tuple(states)), None, {names.SLICE: 8})]))
    models = Models()
    models.bit("another model")
    assert fleet.choice(models) is fleet.choice(models)


def test_an_answer_has_the_packing_before_and_after_and_changes_nothing() -> None:
    fleet, small = Fleet(), wanted(gpu_mem=512)
    states = [CardState(Card(CardUuid(f"GPU-{n}"), n, MODELS[0], 2048), 256) for n in range(2)]
    state = NodeState(N0, 256, tuple(states))
    fleet.apply(Update([NodeView(N0, state, None, {names.SLICE: 16, names.CARD: 2})]))
    question = Simulate([wanted(gpu_mem=1536), small], learned([wanted(gpu_mem=1024)]))
    for _ in range(2):
        found = question.answer(fleet, lambda: None)
        assert [pod["node"] for pod in found["pods"]] == ["n0", "n0"]
        assert found["before"] == {"gpus": 2, "emptyGpus": 2, "allocatedPercent": 0.0, "fragmentedPercent": 0.0}
        assert found["after"] == {"gpus": 2, "emptyGpus": 1, "allocatedPercent": 50.0, "fragmentedPercent": 0.0}
    alone = Simulate([wanted(gpu_mem=1536)], question.defaults).answer(fleet, lambda: None)["after"]
    assert alone == {"gpus": 2, "emptyGpus": 1, "allocatedPercent": 37.5, "fragmentedPercent": 20.0}
