"""What the GPUNode's status says of an administrator's settings and of what is free."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards import card_status
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid
from vgpu.node.cards.inventory import HeldDevices, Inventory
from vgpu.node.gpunode import gpunode_spec, gpunode_status

CARDS = tuple(Card(CardUuid(f"GPU-{index}"), index, "NVIDIA H100", 81920) for index in range(3))


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
AT_NOON, AN_HOUR_LATER = "2026-11-29T12:00:00Z", "2026-11-29T13:00:00Z"


@pytest.fixture
def inventory() -> Inventory:
    made = Inventory(256)
    made.set_gpus(tuple(Gpu(card, minor=card.index) for card in CARDS), {CardUuid("GPU-2"): "Xid79"})
    return made


def spec(*cards: dict[str, object]) -> gpunode_spec.GpuNodeSpec:
    return gpunode_spec.decode(json.dumps({"spec": {"cards": cards}}).encode())


def handler(inventory: Inventory) -> gpunode_spec.SpecHandler:
    return handler_at(inventory, lambda: NOON)


def handler_at(inventory: Inventory, now: Callable[[], datetime]) -> gpunode_spec.SpecHandler:
    return gpunode_spec.SpecHandler(lambda _: None, inventory.set_spec, None, now)


def cordoned_since(inventory: Inventory) -> dict[str, str | None]:
    """What the status says of each card, by UUID."""
    cards = gpunode_status.status_of(inventory.state, 256, "0.1.0", ())["cards"]
    return {card["uuid"]: card.get("cordonedSince") for card in cards}


def settings_known(inventory: Inventory) -> gpunode_status.NodeCondition:
    conditions = gpunode_status.conditions_of(inventory.state, (), is_registered=True)
    return next(condition for condition in conditions if condition.kind == gpunode_status.SETTINGS_KNOWN)


def test_a_uuid_that_no_card_has_is_reported_until_it_is_corrected(inventory: Inventory) -> None:
    assert settings_known(inventory).is_true
    handler(inventory).upsert(spec({"uuid": "GPU-0", "cordoned": True}, {"uuid": "GPU-x"}))
    found = settings_known(inventory)
    assert (found.is_true, found.reason) == (False, "UnknownCard")
    assert found.message == "spec.cards names GPU-x, which no card of this node has: correct the UUID"
    handler(inventory).delete(spec())
    assert settings_known(inventory).is_true


def test_free_memory_and_compute_are_those_of_usable_cards(inventory: Inventory) -> None:
    handler(inventory).replace([spec({"uuid": "GPU-0", "cordoned": True}, {"uuid": "GPU-1", "cordoned": False})], "1")
    inventory.set_held(HeldDevices(frozenset(f"GPU-1::{n}" for n in range(4))))
    inventory.set_cores({"GPU-1": 30, "GPU-0": 100})
    summary = gpunode_status.status_of(inventory.state, 256, "0.1.0", (), is_registered=False)["summary"]
    assert (summary["ready"], summary["health"], summary["cordoned"]) == (False, "2/3", 1)
    assert (summary["freeMemory"], summary["freeCompute"]) == ("79 GiB", "0.7 of 3 cards")


def test_the_arbiter_is_a_condition_where_the_node_has_one() -> None:
    assert gpunode_status.arbiter_condition(None) == ()
    said = [
        (found.kind, found.is_true, found.reason)
        for is_running in (True, False)
        for found in gpunode_status.arbiter_condition(is_running)
    ]
    assert said == [("ArbiterRuns", True, "Running"), ("ArbiterRuns", False, "ArbiterDown")]


def test_a_cordon_keeps_its_time_until_it_ends(inventory: Inventory) -> None:
    """Also where another card is cordoned meanwhile; set again, it has a new time."""
    times = [NOON]
    watched = handler_at(inventory, lambda: times[-1])
    watched.replace([spec()], "1")
    watched.upsert(spec({"uuid": "GPU-0", "cordoned": True}))
    times.append(NOON + timedelta(hours=1))
    both = spec({"uuid": "GPU-0", "cordoned": True}, {"uuid": "GPU-1", "cordoned": True})
    watched.upsert(both)
    assert cordoned_since(inventory) == {"GPU-0": AT_NOON, "GPU-1": AN_HOUR_LATER, "GPU-2": None}
    watched.upsert(spec({"uuid": "GPU-0", "cordoned": False}))
    assert set(cordoned_since(inventory).values()) == {None}
    watched.upsert(both)
    assert cordoned_since(inventory)["GPU-0"] == AN_HOUR_LATER


def test_a_restarted_device_plugin_reads_the_time_of_a_cordon_in_the_status(inventory: Inventory) -> None:
    """Once: later the status of an object may be older than its spec."""
    stored = {"cards": [{"uuid": "GPU-0", "cordonedSince": AT_NOON}]}
    raw = {"spec": {"cards": [{"uuid": "GPU-0", "cordoned": True}]}, "status": stored}
    watched = handler_at(inventory, lambda: NOON + timedelta(hours=1))
    watched.replace([gpunode_spec.decode(json.dumps(raw).encode())], "1")
    assert cordoned_since(inventory)["GPU-0"] == AT_NOON
    watched.upsert(spec())
    watched.upsert(gpunode_spec.decode(json.dumps(raw).encode()))
    assert cordoned_since(inventory)["GPU-0"] == AN_HOUR_LATER


@pytest.mark.parametrize("text", [None, 5, ["x"], "x" * 1000])
def test_a_time_that_is_none_is_bounded(text: object) -> None:
    obj = {"metadata": {"name": "n"}, "spec": {"cards": [{"uuid": "GPU-0", "cordoned": True}]},
           "status": {"sliceMiB": 256, "cards": [{"uuid": "GPU-0", "cordonedSince": text}]}}  # fmt: skip
    (card,) = card_status.node(obj).cards
    assert len(card.cordoned_since) <= len("2026-11-29T12:00:00.000000000+00:00")
    assert card_status.cordoned_since(obj) == {"GPU-0": card.cordoned_since}


def test_a_card_that_is_ill_has_the_time_since_when(inventory: Inventory) -> None:
    """Over restarts of the device plugin too: the time is that of the stored status."""
    ill = gpunode_status.status_of(inventory.state, 256, "0.1.0", ())["cards"]
    first = gpunode_status.with_times(ill, {}, NOON)
    assert [card.get("unhealthySince") for card in first] == [None, None, AT_NOON]
    assert gpunode_status.with_times(ill, {"cards": first}, NOON + timedelta(hours=1)) == first
    well = gpunode_status.with_times([card | {"healthy": True} for card in ill], {"cards": first}, NOON)
    assert all("unhealthySince" not in card for card in well)
    again = gpunode_status.with_times(ill, {"cards": well}, NOON + timedelta(hours=1))
    assert again[2]["unhealthySince"] == AN_HOUR_LATER


@pytest.mark.parametrize("text", [None, 5, ["x"], "", "x" * 1000])
def test_a_stored_time_of_an_ill_card_is_bounded(inventory: Inventory, text: object) -> None:
    (card, *_) = gpunode_status.status_of(inventory.state, 256, "0.1.0", ())["cards"]
    stored = {"cards": [{"uuid": card["uuid"], "healthy": False, "unhealthySince": text}]}
    (seen,) = gpunode_status.with_times([card | {"healthy": False}], stored, NOON)
    assert 0 < len(seen["unhealthySince"]) <= len("2026-11-29T12:00:00.000000000+00:00")
