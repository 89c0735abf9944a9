"""What the extender reads of a node's report of used GPU time; a stolen token of a node can write anything."""

from typing import Any

import pytest

from extender.history.recording.events import Used
from extender.state.fields import container_use
from extender.state.fields.container_use import ContainerUse
from tests.extender.conftest import World
from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName, PodUid

USE = MeasuredUse(
    PodUid("uid-1"), ContainerName("main"), CardUuid("GPU-a"), 1000, 61_000, 30_000, 50, 100, 200, (0, 1), 7_000
)
ENTRY = measured_use.as_json(USE)


def test_what_a_node_writes_is_what_is_read() -> None:
    (uses,) = container_use.decode({"usage": [ENTRY]}).values()
    assert uses == (
        ContainerUse(
            PodUid("uid-1"), ContainerName("main"), CardUuid("GPU-a"), 1000, 61_000, 30_000, 50, 100, 200, (0, 1), 7_000
        ),
    )


WRONG: list[dict[str, Any]] = [
    {"podUID": ""},
    {"container": "a\nb"},
    {"gpu": "x" * 81},
    {"gpuMs": -1},
    {"gpuMs": 10**12},
    {"gpuMs": True},
    {"fromMs": 61_000},
    {"fromMs": "1000"},
    {"untilMs": 10**18},
    {"percent": 101},
    {"peakMiB": 1 << 60},
    {"levels": [0] * 22},
    {"levels": [-1]},
    {"levels": {"0": 1}},
    {"idleMs": -1},
    {"idleMs": 1 << 60},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_entry_is_left_out_and_the_others_are_read(wrong: dict[str, Any]) -> None:
    read = container_use.decode({"usage": [ENTRY | wrong, ENTRY | {"podUID": "uid-2"}, None]})
    assert list(read) == ["uid-2"]


@pytest.mark.parametrize("listed", [None, {}, "x", [1, None, []]])
def test_a_list_that_is_none_says_nothing(listed: Any) -> None:
    assert container_use.decode({"usage": listed}) == {}


def test_news_are_entries_that_have_grown() -> None:
    before = container_use.decode({"usage": [ENTRY, ENTRY | {"fromMs": 0}]})
    after = container_use.decode({"usage": [ENTRY | {"untilMs": 62_000}, ENTRY | {"fromMs": 0}]})
    assert [new.until_ms for new in container_use.news(before, after)] == [62_000]
    assert list(container_use.news(after, after)) == []


async def test_a_report_of_used_time_leaves_the_state_of_the_node_as_it_is(world: World) -> None:
    """The state of 5,000 nodes would be derived again every minute, and held slices would look newer than they are."""
    before = world.cluster.objects.gpunodes[NodeName("n1")]
    state = world.cluster.states.of(NodeName("n1"))
    name = "/apis/vgpu.io/v1alpha1/gpunodes/n1/status"
    await world.client.patch(name, {"status": {"usage": [ENTRY]}})
    await world.until(lambda: "uid-1" in world.cluster.objects.gpunodes[NodeName("n1")].usage)
    after = world.cluster.objects.gpunodes[NodeName("n1")]
    assert (after.version, world.cluster.states.of(NodeName("n1")) is state) == (before.version, True)
    assert [record.pod_uid for record in world.history.records if isinstance(record, Used)] == ["uid-1"]
