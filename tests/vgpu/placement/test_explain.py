"""Explanations agree with placement, name the nearest fit, and advise only what would help."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS, CardMode
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement import explain
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.snapshot import NodeView

ROOM = dict.fromkeys(names.KUBELET_RESOURCES, 1000)
PACK = PackingPolicy.BINPACK


def asked(annotations: dict[str, str] | None = None, **amounts: int) -> PodRequest:
    parsed = request.parse(strategies.pod(strategies.container(**amounts), annotations=annotations))
    assert parsed.request is not None
    return parsed.request


def view(name: str = "n1", *free_mib: int, blocked: Reason | None = None, **fields: Any) -> NodeView:
    """A node with a card of 2 GiB for each amount of free MiB."""
    state = strategies.node_state(*(strategies.card(n, **fields) for n in range(len(free_mib))), name=name)
    cards = tuple(
        CardState(empty.card, empty.slice_mib, Usage(slices=(2048 - free) // 256, memory_mib=2048 - free))
        for empty, free in zip(state.cards, free_mib, strict=True)
    )
    return NodeView(NodeName(name), replace(state, cards=cards), blocked, ROOM)


@given(st.lists(st.lists(st.sampled_from([0, 256, 512, 1024, 2048]), min_size=1, max_size=3), max_size=3), st.data())
def test_verdicts_are_those_of_placement(free: list[list[int]], data: st.DataObject) -> None:
    views = [view(f"n{n}", *free_of_node) for n, free_of_node in enumerate(free)]
    wanted = asked(gpu_mem=data.draw(st.sampled_from([256, 700, 2048])), gpu=1)
    found = explain.explain(wanted, views, PACK)
    expected = {node_view.name: node_view.place(wanted, PACK) for node_view in views}
    assert {node.node for node in found.nodes} == expected.keys()
    for node in found.nodes:
        placed = expected[node.node]
        assert node.assignment == (placed if isinstance(placed, Assignment) else None)
        assert node.reason == (placed.reason if isinstance(placed, NodeRefusal) else None)
    assert sum(found.counts.values()) == len(
        [verdict for verdict in expected.values() if isinstance(verdict, NodeRefusal)]
    )
    assert (found.nearest is None) or not found.fitting


def test_the_nearest_fit_is_the_node_that_lacks_least() -> None:
    found = explain.explain(asked(gpu_mem=1536), [view("n1", 256, 512), view("n2", 1024), view("n3", 768)], PACK)
    assert found.nearest is not None
    assert (found.nearest.node, found.nearest.cards, found.nearest.lacking_mib) == ("n2", ("GPU-0",), 512)
    assert found.nearest.detail == "card 0 lacks 512 MiB of memory (1 GiB free, 1.5 GiB asked for)"


def test_a_card_that_is_cordoned_or_of_another_model_is_no_near_fit() -> None:
    wanted = asked({names.USE_GPU_MODEL: "A100"}, gpu_mem=1536)
    assert explain.nearest(wanted, [view("n1", 1024), view("n2", 1024, cordoned=True)]) is None


@pytest.mark.parametrize(
    ("amounts", "annotations", "node", "code", "text"),
    [
        ({"gpu_mem": 1536}, {}, view("n1", 768), "ask-for-less-memory", "ask for 768 MiB or less"),
        (
            {"gpu_mem": 512},
            {names.USE_GPU_MODEL: "A100"},
            view("n1", 768),
            "accept-other-cards",
            "no card is of model a100; change vgpu.io/use-gpu-model: there are NVIDIA",
        ),
        (
            {"gpu_mem": 512},
            {names.USE_GPU_UUID: "GPU-9"},
            view("n1", 768),
            "accept-other-cards",
            "no card has this UUID",
        ),
        (
            {"gpu_mem": 512},
            {names.AVOID_GPU_UUID: "GPU-0"},
            view("n1", 768),
            "accept-other-cards",
            "remove the annotations",
        ),
        ({"gpu": 9}, {}, view("n1", 2048, 2048), "ask-for-fewer-cards", "ask for 2 cards or fewer (vgpu.io/gpu: 2)"),
        (
            {"gpu": 9},
            {},
            view("n1", 2048, 0),
            "ask-for-fewer-cards",
            "ask for 1 card or fewer (vgpu.io/gpu: 1); the larg",
        ),
        ({"gpu": 9}, {}, view("n1", 0, 0), "ask-for-fewer-cards", "the largest node has 2, and several pods may start"),
        (
            {"gpu": 3, "gpu_mem": 1536, "gpu_cores": 90},
            {},
            view("n1", 2048, 2048),
            "ask-for-fewer-cards",
            "ask for 2 cards or fewer (vgpu.io/gpu: 2, vgpu.io/gpu-mem: 1024, vgpu.io/gpu-cores: 60)",
        ),
        (
            {"gpu_mem": 512},
            {names.COMPUTE_POLICY: "space"},
            view("n1", 768),
            "serve-space",
            "no card serves groups in space: install vgpu-space",
        ),
        ({"gpu_mem": 512}, {}, view("n1", 768, 2048, cordoned=True), "uncordon", "uncordon card 0 of n1"),
        ({"gpu_mem": 512}, {}, view("n1", 768, healthy=False), "repair", "repair card 0 of n1"),
        (
            {"gpu_mem": 512},
            {},
            view("n1", 768, mode=CardMode.EXCLUSIVE),
            "share",
            "set the mode of card 0 of n1 to shared",
        ),
        (
            {"gpu_mem": 512},
            {},
            view("n1", 768, mode=CardMode.EXCLUSIVE, exclusive_process=True),
            "default-compute-mode",
            "let several processes use card 0 of n1: nvidia-smi -c DEFAULT there",
        ),
        ({"gpu_mem": 512}, {}, view("n1", 768, blocked=Reason.PLUGIN_AWAY), "start-device-plugin", "n1"),
    ],
    ids=[
        "memory",
        "model",
        "uuid",
        "avoided",
        "9 cards",
        "9 of 1 free",
        "9 of none free",
        "shares",
        "space",
        "cordon",
        "unhealthy",
        "exclusive",
        "one process",
        "plugin",
    ],
)
def test_advice(amounts: dict[str, int], annotations: dict[str, str], node: NodeView, code: str, text: str) -> None:
    found = explain.explain(asked(annotations, **amounts), [node], PACK)
    assert [advice.code for advice in found.advice] == [code]
    assert text in found.advice[0].text


def test_the_detail_of_a_card_for_one_process_says_so() -> None:
    node = view("n1", 768, mode=CardMode.EXCLUSIVE, exclusive_process=True)
    (verdict,) = explain.explain(asked(gpu_mem=512), [node], PACK).nodes[0].cards
    assert (verdict.reason, verdict.detail) == (Reason.CARD_EXCLUSIVE, EXCLUSIVE_PROCESS)
    (verdict,) = explain.explain(asked(gpu_mem=512), [view("n1", 768, mode=CardMode.EXCLUSIVE)], PACK).nodes[0].cards
    assert (verdict.reason, verdict.detail) == (Reason.CARD_EXCLUSIVE, "")


def test_less_time_is_advised_with_the_amount_that_is_free() -> None:
    full = view("n1", 2048)
    busy = replace(full.state.cards[0], usage=Usage(slices=1, memory_mib=256, cores=70, shares=1))
    node = replace(full, state=replace(full.state, cards=(busy,)))
    (found,) = explain.explain(asked(gpu_mem=512, gpu_cores=50), [node], PACK).advice
    assert found.text == "ask for 30 % of time or less (vgpu.io/gpu-cores)"


def test_nothing_is_advised_where_the_pod_fits() -> None:
    found = explain.explain(asked(gpu_mem=512), [view("n1", 0), view("n2", 1024)], PACK)
    assert (found.fitting, found.advice, found.nearest) == (["n2"], (), None)
    assert found.nodes[0].node == "n2"


def test_a_refusal_that_views_do_not_show_is_given_from_outside() -> None:
    reserved = {NodeName("n1"): NodeRefusal(Reason.CARD_RESERVED)}
    found = explain.explain(asked(gpu_mem=512), [view("n1", 1024)], PACK, overrides=reserved)
    assert dict(found.counts) == {Reason.CARD_RESERVED: 1}


def test_the_work_can_be_ended() -> None:
    def end() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        explain.explain(asked(gpu_mem=512), [view("n1", 1024)], PACK, pause=end)


def test_several_cards_are_advised_only_where_the_pod_is_placed_on_them() -> None:
    """Every other piece of advice was tried; this one was given also where no node had so many cards free."""
    wanted = asked(gpu_mem=5000, gpu_cores=60)
    assert [advice.code for advice in explain.explain(wanted, [view("n1", 2048, 0), view("n2", 512)], PACK).advice] == [
        "ask-for-less-memory"
    ]
    found = explain.explain(wanted, [view("n1", 2048), view("n2", 2048, 2048, 2048, 2048)], PACK).advice
    (several,) = [advice for advice in found if advice.code == "use-several-cards"]
    assert (several.node, several.text) == (
        "n2", "the largest card has 2 GiB; spread the memory over cards (vgpu.io/gpu: 3, vgpu.io/gpu-mem: 5001)",
    )  # fmt: skip
    spread = asked(gpu=3, gpu_mem=5001, gpu_cores=60)
    assert isinstance(view("n2", 2048, 2048, 2048, 2048).place(spread, PACK), Assignment)


def test_what_a_pod_needs_and_no_node_has_free_is_told_as_such() -> None:
    """Advice to spread the memory vanished wherever the cards were not free at this moment."""
    (spread,) = explain.explain(asked(gpu_mem=5000), [view("n1", 0, 0, 0, 0), view("n2", 2048, 0)], PACK).advice[1:]
    assert (spread.code, spread.node) == ("use-several-cards", "")
    assert spread.text == (
        "the largest card has 2 GiB; spread the memory over 3 cards of a node (vgpu.io/gpu: 3, vgpu.io/gpu-mem: 5001); "
        "no node has 3 cards with as much free now"
    )
    (model,) = explain.explain(asked({names.USE_GPU_MODEL: "B200"}, gpu_mem=512), [view("n1", 0)], PACK).advice
    assert (model.code, model.node) == ("accept-other-cards", "")
    assert model.text.startswith("no card is of model b200; change vgpu.io/use-gpu-model: there are NVIDIA")


@pytest.mark.parametrize(
    ("beside", "apart", "said"),
    [
        (
            frozenset(),
            frozenset(),
            "no pod with app=a holds a card: start one, or write vgpu.io/preferred-gpu-affinity",
        ),
        (frozenset({"GPU-9"}), frozenset(), "write vgpu.io/preferred-gpu-affinity instead of vgpu.io/gpu-affinity"),
        (None, frozenset({"GPU-0"}), "write vgpu.io/preferred-gpu-anti-affinity instead of vgpu.io/gpu-anti-affinity"),
    ],
)
def test_neighbours_that_are_missing_are_named(
    beside: frozenset[CardUuid], apart: frozenset[CardUuid], said: str
) -> None:
    wanted = asked({names.GPU_AFFINITY: "app=a"}, gpu_mem=512)
    selector = replace(wanted.options.selector, beside=beside, apart=apart)
    wanted = replace(wanted, options=replace(wanted.options, selector=selector))
    (found,) = explain.explain(wanted, [view("n1", 768)], PACK).advice
    assert (found.code, found.text.startswith(said)) == ("prefer-neighbours", True), found.text
