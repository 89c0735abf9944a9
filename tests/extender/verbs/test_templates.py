"""The cluster autoscaler's question: whole template nodes, of which no watch has shown anything."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.protocol import wire
from extender.protocol.wire import FullNode
from extender.state.pod_reader import PodReader
from extender.verbs import templates
from tests import strategies
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName

CARD_MIB = 81_920
SLICES = CARD_MIB // 256
LABELS = {templates.PRODUCT: "NVIDIA-A100-SXM4-80GB", templates.MEMORY: str(CARD_MIB), templates.COUNT: "1"}


def template(name: str, slices: int = SLICES, labels: dict[str, str] = LABELS) -> dict[str, Any]:
    amounts = {"cpu": "12", names.SLICE: str(slices), names.CARD: "1" if slices else "0"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": amounts}}


def quarter(**annotations: str) -> dict[str, Any]:
    return strategies.admit(strategies.pod(strategies.container(gpu_mem=CARD_MIB // 4), annotations=annotations))


async def ask(world: World, pod: dict[str, Any], *nodes: dict[str, Any]) -> dict[str, Any]:
    body = {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}
    answer: dict[str, Any] = json.loads(await world.verbs.filter(json.dumps(body).encode()))
    return answer


async def test_eight_quarters_of_a_card_need_two_template_nodes(world: World) -> None:
    """The autoscaler takes what it has placed from a template's amounts, and asks again."""
    used: dict[str, int] = {}
    for _ in range(8):
        for name in (f"template-{n}" for n in range(8)):
            node = template(name, SLICES - used.get(name, 0))
            if [item["metadata"]["name"] for item in (await ask(world, quarter(), node))["Nodes"]["items"]]:
                used[name] = used.get(name, 0) + SLICES // 4
                break
    assert used == {"template-0": SLICES, "template-1": SLICES}


async def test_whole_nodes_are_answered_with_whole_nodes(world: World) -> None:
    fits, small = template("fits"), template("small", labels=LABELS | {templates.MEMORY: "4096"})
    answer = await ask(world, quarter(), fits, small, template("n1"), template("no-cards", slices=0, labels={}))
    assert (answer["Nodes"]["items"], answer["NodeNames"]) == ([fits], None)
    refused = {name: text.partition(":")[0] for name, text in answer["FailedAndUnresolvableNodes"].items()}
    assert refused == {"small": "CardTooSmall", "n1": "CardTooSmall", "no-cards": "NoInventory"}  # n1 is in the cache


async def test_a_node_type_with_the_wrong_model_fits_no_pod(world: World) -> None:
    node = template("t")
    assert (await ask(world, quarter(**{names.USE_GPU_MODEL: "H100"}), node))["Nodes"]["items"] == []
    assert (await ask(world, quarter(**{names.USE_GPU_MODEL: "NVIDIA A100-SXM4"}), node))["Nodes"]["items"] == [node]
    assert (await ask(world, quarter(**{names.AVOID_GPU_MODEL: "A100-SXM4 80GB"}), node))["Nodes"]["items"] == []


async def test_the_question_takes_nothing(world: World) -> None:
    for _ in range(20):
        await ask(world, quarter(), template("t"))
    assert world.used_slices() == [0, 0]
    assert "t" not in world.cluster.objects.nodes
    assert world.cluster.rows.index.row_of(NodeName("t")) is None


def test_cards_without_labels_follow_from_the_amounts() -> None:
    view = templates.view(NodeName("t"), FullNode({}, {names.SLICE: "640", names.CARD: 2}, b""), 256)
    assert [state.card.memory_mib for state in view.state.cards] == [CARD_MIB, CARD_MIB]
    assert templates.view(NodeName("t"), FullNode(LABELS, {}, b""), 256).blocked is Reason.NO_INVENTORY


@pytest.mark.parametrize("item", [{}, {"metadata": {"name": 1}}, {"metadata": {"name": "n", "labels": {"a": 1}}}])
def test_a_malformed_node_is_named(item: dict[str, Any]) -> None:
    body = {"Pod": {"metadata": {}, "spec": {}}, "Nodes": {"items": [item]}}
    with pytest.raises(wire.MalformedCall, match=r"Nodes\.items"):
        wire.call(json.dumps(body).encode())


@given(st.dictionaries(st.sampled_from([templates.COUNT, templates.MEMORY, templates.PRODUCT]), st.text(max_size=4)))
def test_any_labels_make_a_node(labels: dict[str, str]) -> None:
    request = PodReader().decoded(quarter()).parsed.request
    assert request is not None
    for amounts in ({}, {names.SLICE: "-1", names.CARD: "9999"}, {names.SLICE: "1e9"}):
        templates.view(NodeName("t"), FullNode(labels, amounts, b""), 256)
