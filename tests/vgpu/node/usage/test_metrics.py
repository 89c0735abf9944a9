"""The metrics of a node, from its state to Prometheus' text."""

import re
from dataclasses import replace

import pytest

from tests.vgpu.node.builders import gpu, uuid
from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry
from vgpu.adapters.nvml.records import Reading
from vgpu.domain.formats.region import Activity, CardUse, UsageWindow, Wait
from vgpu.domain.identifiers import ContainerName, Namespace, NodeName, PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.containers.allocations import Holder
from vgpu.node.usage import dcgm_metrics, metrics
from vgpu.node.usage.metrics import CATALOGUE, CardReading, ContainerState, NodeReading

TEAM = Namespace("team")

READING = Reading(100 * MIB, 60 * MIB, 35 * MIB, 40.0, 300.0, 12.5, 0.5, 0.25)
USE = CardUse(
    uuid(0),
    used_bytes=20 * MIB,
    limit_bytes=50 * MIB,
    peak_bytes=30 * MIB,
    refusals=3,
    context_bytes=0,
    gpu_ns=2_000_000_000,
    throttled_ns=500_000_000,
    second=UsageWindow(permille=250),
    activity=Activity(turn=Wait(250_000_000, 5)),
)
HOLDER = Holder(PodUid("uid"), TEAM, "train-0", ContainerName("main"))
LOAD = Holder(PodUid("uid-2"), TEAM, "hold-x", ContainerName("hold"))
PART = ContainerState(HOLDER, uuid(0), 50 * MIB, 30, USE, 2, 19 * MIB, 3.5, 3.0, 90_500)
STATE = NodeReading(
    NodeName("n1"),
    "0.2",
    (CardReading(gpu(0), "", READING, 8, False, 4.0, 0.5, {"13": 2}), CardReading(gpu(1), "Xid79")),
    (
        replace(
            PART,
            use=replace(USE, activity=replace(USE.activity, long_kernels=2, long_kernel_ns=1_400_000_000)),
            is_synthetic=True,
            endless_kernel_s=7.0,
            outside_group=1,
            space_group="team/models",
        ),
    ),
    {"LimiterNotLoaded": 1},
    True,
    True,
    group_faults={(uuid(0), "team/models"): 2},
)


def values(families: list[MetricFamily]) -> dict[str, list[float]]:
    return {family.metric.name: [value for _, value in family.samples] for family in families}


def text(state: NodeReading) -> str:
    registry = Registry()
    registry.add(lambda: metrics.families(state))
    return registry.render("text/plain")[0].decode()


def test_the_values_of_a_container_have_its_labels_and_base_units() -> None:
    found = text(STATE)
    card = f'gpu_index="0",gpu_uuid="{uuid(0)}",model="NVIDIA H100"'
    labels = f'container="main",{card},namespace="team",node="n1",pod="train-0"'
    lines = found.split("\n")
    assert f"vgpu_container_memory_limit_bytes{{{labels}}} 5.24288e+07" in lines
    assert f"vgpu_container_gpu_seconds_total{{{labels}}} 3.5" in lines
    assert f"vgpu_container_turn_seconds_total{{{labels}}} 2.0" in lines
    assert f"vgpu_container_cores_ratio{{{labels}}} 0.3" in lines


def test_every_value_is_in_the_catalogue_and_every_metric_of_the_catalogue_has_a_value_here() -> None:
    found = values(metrics.families(STATE))
    assert list(found) == [metric.name for metric in CATALOGUE]
    assert all(found.values())
    assert found["vgpu_container_throttled_seconds_total"] == [0.5]
    assert found["vgpu_container_wait_seconds_total"] == [0.25, 0, 0, 0]
    assert found["vgpu_container_long_kernel_seconds_total"] == [pytest.approx(1.4)]
    assert found["vgpu_container_endless_kernel_seconds"] == [7]
    assert (found["vgpu_card_healthy"], found["vgpu_card_fault"]) == ([1, 0], [1])
    assert found["vgpu_card_busy_seconds_total"] == [4.0, 0.0]


def test_only_a_synthetic_load_has_a_series_that_says_so() -> None:
    state = replace(STATE, containers=(PART, replace(PART, holder=LOAD, is_synthetic=True)))
    (synthetic,) = (family for family in metrics.families(state) if family.metric.name == "vgpu_container_synthetic")
    assert [(labels[-3:], value) for labels, value in synthetic.samples] == [(("team", "hold-x", "hold"), 1)]


def test_a_group_has_its_members_and_the_faults_of_its_server() -> None:
    member = replace(PART, space_group="team/models")
    other = replace(member, holder=LOAD)
    plain = replace(PART, holder=replace(HOLDER, name="plain"))
    state = replace(STATE, containers=(member, other, plain))
    found = {family.metric.name: family.samples for family in metrics.families(state)}
    members = found["vgpu_container_space_group"]
    assert [(labels[-4:], value) for labels, value in members] == [
        (("team", "train-0", "main", "team/models"), 1),
        (("team", "hold-x", "hold", "team/models"), 1),
    ]
    assert found["vgpu_card_group_faults_total"] == [(("n1", uuid(0), "0", "NVIDIA H100", "team/models"), 2)]


def test_what_is_not_known_has_no_value() -> None:
    state = replace(STATE, containers=(ContainerState(HOLDER, uuid(0)),), arbiter_runs=None)
    found = values(metrics.families(state))
    assert found["vgpu_container_memory_used_bytes"] == found["vgpu_container_memory_limit_bytes"] == []
    assert found["vgpu_node_arbiter_up"] == []
    assert found["vgpu_card_power_watts"] == [300.0]  # of the card that answers


def test_eight_cards_with_32_containers_each_stay_below_6000_series() -> None:
    cards = tuple(CardReading(gpu(number), "", READING) for number in range(8))
    parts = tuple(
        replace(PART, gpu=uuid(card), holder=replace(HOLDER, name=f"p{card}-{pod}"))
        for card in range(8)
        for pod in range(32)
    )
    state = replace(STATE, cards=cards, containers=parts)
    assert sum(len(family.samples) for family in metrics.families(state)) < 6000
    assert sum(len(family.samples) for family in dcgm_metrics.families(state)) < 900


def test_the_names_of_dcgm_have_each_containers_own_figure() -> None:
    found = {family.metric.name: family.samples for family in dcgm_metrics.families(STATE)}
    (utilization,) = found["DCGM_FI_DEV_GPU_UTIL"]
    assert utilization == (("0", uuid(0), "nvidia0", "NVIDIA H100", "n1", "main", "team", "train-0"), 25.0)
    assert [value for _, value in found["DCGM_FI_DEV_FB_USED"]] == [20.0]
    assert [value for _, value in found["DCGM_FI_DEV_FB_FREE"]] == [30.0]
    alone = {family.metric.name: family.samples for family in dcgm_metrics.families(replace(STATE, containers=()))}
    assert alone["DCGM_FI_DEV_GPU_UTIL"] == [(("0", uuid(0), "nvidia0", "NVIDIA H100", "n1", "", "", ""), 50.0)]
    assert [value for _, value in alone["DCGM_FI_DEV_FB_USED"]] == [60.0]


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda row: row.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"vgpu_(container|card|node)_[a-z_]+", metric.name)
    assert (metric.kind is MetricKind.COUNTER) == metric.name.endswith("_total")
    assert not metric.help.endswith(".")


def test_hostile_names_stay_in_their_label() -> None:
    holder = Holder(PodUid("uid"), TEAM, 'a"} 1\nfake{x="', ContainerName("main\\"))
    found = text(replace(STATE, containers=(replace(PART, holder=holder),)))
    assert "\nfake" not in found
    long = text(replace(STATE, containers=(replace(PART, holder=replace(HOLDER, name="x" * 5000)),)))
    assert max(len(line) for line in long.split("\n")) < 1000
