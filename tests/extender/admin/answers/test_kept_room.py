"""Room that is kept free for a gang: every answer about another pod says so, and none says that there is room now."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from extender.explain.unschedulable import UnschedulablePods
from extender.gangs.room_holding import IMPOSSIBLE, RoomHolding
from extender.gangs.time_slices import Pause
from extender.state.held_room import HeldRoom, Usages
from extender.verbs.filter import Filter
from tests import strategies
from tests.extender.admin.conftest import Admin
from vgpu.cli.cluster import describe
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, NodeName
from vgpu.placement.policies import DefaultPolicies

pytestmark = pytest.mark.heavy

GANG = (DEFAULT_NAMESPACE, GangSource.ANNOTATION, "train")
SINCE_MS, UNTIL_MS = 1_764_442_401_000, 1_764_443_001_000
UNTIL = "2025-11-29T19:03:21+00:00"
NODES = ("n1", "n2", "n3")


@pytest.fixture(autouse=True)
def as_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the leader leave the room as a test keeps it: it ends what is kept for a gang that does not exist."""

    async def nothing(holding: RoomHolding, pause: Pause) -> None:
        pass

    monkeypatch.setattr(RoomHolding, "look", nothing)


def whole_node(admin: Admin, name: str) -> Usages:
    state = admin.world.cluster.states.usable(NodeName(name))
    assert isinstance(state, NodeState)
    return {card.card.uuid: Usage(wholes=1, slices=card.total_slices, cores=100) for card in state.cards}


async def keep(admin: Admin, *nodes: str, priority: int = 0) -> None:
    """Keep whole nodes free for a gang."""
    usages = {NodeName(name): whole_node(admin, name) for name in nodes}
    admin.world.cluster.holds.now = HeldRoom(GANG, priority, usages, SINCE_MS, UNTIL_MS)
    await admin.fresh()


def manifest(name: str = "new", priority: int = 0, gang: str = "", **amounts: Any) -> dict[str, Any]:
    annotations = {names.GANG: gang, names.GANG_SIZE: "1"} if gang else {}
    spec = {"containers": [strategies.container(**amounts)], "priority": priority}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


async def simulated(admin: Admin, *pods: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await admin.post("/simulate", {"pods": [{"pod": pod} for pod in pods]})
    return found


async def test_all_answers_about_a_pod_name_the_kept_room(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    await keep(admin, *NODES)
    explained = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
    assert [(reason["reason"], reason["nodes"]) for reason in explained["reasons"]] == [("CardKeptForGang", 3)]
    assert "(CardKeptForGang)" in explained["message"]
    (waiting,) = (await admin.get("/pending"))["items"]
    assert {name: waiting[name] for name in ("message", "reasons", "nearest")} == {
        name: explained[name] for name in ("message", "reasons", "nearest")
    }
    simulation = await simulated(admin, manifest(gpu_mem=1024))
    (landing,) = simulation["pods"]
    assert (landing["node"], landing["reasons"]) == ("", explained["reasons"])
    known = admin.world.cluster.objects.pods[pod["metadata"]["uid"]]
    seen, recorder = admin.world.seen, admin.world.seen.recorder
    explaining = Filter(admin.world.cluster, DefaultPolicies())
    events = UnschedulablePods(admin.world.cluster, explaining, recorder, admin.world.clock, seen.gangs, asyncio.sleep)
    why = await events._why(known)
    assert why is not None
    assert why[0] == "CardKeptForGang"


async def test_a_pod_is_told_until_when_the_room_is_kept(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    await keep(admin, *NODES)
    found = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
    assert [(advice["code"], advice["text"]) for advice in found["advice"]] == [
        ("CardKeptForGang", f"wait: the room is kept free for a gang until {UNTIL} at most")
    ]


async def test_the_nearest_fit_is_the_same_for_a_list_and_for_one_pod(admin: Admin) -> None:
    for card in range(2):
        filler = await admin.world.create_pod(gpu_mem=1536)
        assert await admin.world.bind(filler, "n3") == "", card
        await admin.world.until_bound_is_watched(filler)
    pod = await admin.world.create_pod(gpu_mem=1024)
    await keep(admin, "n1", "n2")
    explained = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
    (waiting,) = (await admin.get("/pending"))["items"]
    assert explained["nearest"]["node"] == "n3"
    assert (waiting["nearest"], waiting["message"]) == (explained["nearest"], explained["message"])


async def test_a_pod_is_placed_beside_the_kept_room(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    await keep(admin, "n1", "n3")
    (landing,) = (await simulated(admin, manifest(gpu_mem=1024)))["pods"]
    assert landing["node"] == "n2"
    (waiting,) = (await admin.get("/pending"))["items"]
    assert "a node has room now" in waiting["message"]
    explained = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
    assert (explained["fits"], waiting["message"]) == (True, explained["message"])


async def test_the_gang_and_pods_of_higher_priority_get_the_kept_room_in_a_simulation(admin: Admin) -> None:
    await keep(admin, *NODES, priority=5)
    pods = [
        manifest("equal", 5, gpu_mem=256),
        manifest("higher", 6, gpu_mem=256),
        manifest("own", gang="train", gpu_mem=256),
        manifest("other", gang="eval", gpu_mem=256),
    ]
    landings = (await simulated(admin, *pods))["pods"]
    assert [bool(landing["node"]) for landing in landings] == [False, True, True, False]


async def test_a_simulation_says_which_room_is_kept(admin: Admin) -> None:
    assert (await simulated(admin, manifest(gpu_mem=256)))["keptForGang"] is None
    await keep(admin, "n1", "n3")
    found = await simulated(admin, manifest(gpu_mem=256))
    assert found["keptForGang"] == {
        "gang": "gang default/train", "cards": 4, "nodes": ["n1", "n3"], "priority": 0,
        "since": "2025-11-29T18:53:21+00:00", "until": UNTIL,
    }  # fmt: skip
    assert (
        f"4 cards are kept free for gang default/train since 2025-11-29T18:53:21+00:00, until {UNTIL} at most: pods of "
        "priority 0 or lower do not get them (CardKeptForGang)\n"
    ) in describe.simulation(found)


async def test_doctor_names_the_kept_room_and_gangs_that_fit_no_cards_that_exist(admin: Admin) -> None:
    await keep(admin, "n1")
    huge = admin.world.seen.gangs.known.open((DEFAULT_NAMESPACE, GangSource.COSCHEDULING, "huge"))
    huge.impossible_since_ms = SINCE_MS
    await admin.fresh()
    findings = (await admin.get("/summary"))["findings"]
    assert findings == [
        {
            "severity": "warning", "about": "gang default/train", "reason": "CardKeptForGang",
            "detail": f"room on 2 cards of n1 is kept free for it until {UNTIL} at most, because it has waited for "
            "long; other pods of priority 0 or lower do not get it",
            "since": "2025-11-29T18:53:21+00:00",
        },
        {
            "severity": "error", "about": "PodGroup default/huge", "reason": "NeverFits", "detail": IMPOSSIBLE,
            "since": "2025-11-29T18:53:21+00:00",
        },
    ]  # fmt: skip


async def test_room_that_is_no_longer_kept_is_open_to_the_next_question(admin: Admin) -> None:
    await keep(admin, *NODES)
    assert (await simulated(admin, manifest(gpu_mem=256)))["placed"] == 0
    admin.world.cluster.holds.now = None
    await admin.fresh()
    assert (await simulated(admin, manifest(gpu_mem=256)))["placed"] == 1


async def test_cards_that_are_reserved_for_a_nominated_pod_are_no_room_for_others(admin: Admin) -> None:
    """A pod for which others are evicted from n1 needs both cards there; n2 and n3 are full."""
    for name in ("n2", "n3"):
        for _ in range(2):
            filler = await admin.world.create_pod(gpu_mem=2048)
            assert await admin.world.bind(filler, name) == ""
            await admin.world.until_bound_is_watched(filler)
    high = await admin.world.create_pod(gpu=2)
    waiting = await admin.world.create_pod(gpu_mem=256)
    known = admin.world.cluster.objects.pods[high["metadata"]["uid"]]
    nominated = structs.replace(
        known, version=1 << 40, scheduling=structs.replace(known.scheduling, priority=10, nominated_node=NodeName("n1"))
    )
    admin.world.cluster.updates.upsert_pod(nominated)
    await admin.fresh()
    name = waiting["metadata"]["name"]
    explained = await admin.get(f"/pods/default/{name}/explain")
    assert {reason["reason"]: reason["nodes"] for reason in explained["reasons"]} == {
        "CardReserved": 1, "CardInsufficientMemory": 2,
    }  # fmt: skip
    (row,) = [row for row in (await admin.get("/pending"))["items"] if row["name"] == name]
    assert (row["message"], row["reasons"]) == (explained["message"], explained["reasons"])


@pytest.mark.parametrize("size", [1, 2])
async def test_a_gang_is_simulated_beside_the_kept_room_of_another_gang(admin: Admin, size: int) -> None:
    await keep(admin, "n1", "n2")
    pod = manifest("member", gpu=1)
    pod["metadata"]["annotations"] = {names.GANG: "eval", names.GANG_SIZE: str(size + 1)}
    found = await admin.post("/simulate", {"pods": [{"pod": pod, "count": size + 1}]})
    assert found["placed"] == (2 if size == 1 else 0)
