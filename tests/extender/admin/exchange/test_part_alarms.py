"""What is wrong with the extender's own parts, and since when its answers are old."""

from typing import Any

import pytest

from extender import admin_service
from extender.admin.exchange import part_alarms
from extender.admin.exchange.part_alarms import PartHealth, WatchAge
from extender.history.lag import Lag
from extender.lead import admin_address, leadership
from extender.lead.admin_address import AdminAddress
from extender.settings import ExtenderSettings
from extender.state.objects import WatchedLease
from tests.extender.conftest import World
from vgpu.domain import names

NOW_MS = 1_800_000_000_000
WELL = Lag(0, 0, 0, 0, 0, "")


def of(
    *watches: WatchAge,
    lag: Lag | None = WELL,
    is_led: bool = True,
    is_history_out_of_reach: bool = False,
    why_not_led: str = "",
) -> PartHealth:
    return part_alarms.health(
        watches,
        lag,
        is_led=is_led,
        now_ms=NOW_MS,
        is_history_out_of_reach=is_history_out_of_reach,
        why_not_led=why_not_led,
    )


def test_nothing_is_wrong() -> None:
    assert of(WatchAge("pods", 100.0), WatchAge("leases", 5.0), WatchAge("podgroups", None)) == part_alarms.HEALTHY


def test_a_silent_watch_makes_answers_stale() -> None:
    found = of(WatchAge("pods", 200.0), WatchAge("leases", 3600.4))
    assert [(alarm.reason, alarm.since_ms) for alarm in found.alarms] == [
        ("WatchSilent", NOW_MS - 200_000), ("WatchSilent", NOW_MS - 3_601_000),
    ]  # fmt: skip
    assert found.stale_since_ms == NOW_MS - 3_601_000


@pytest.mark.parametrize(
    ("health", "severity", "reason", "words"),
    [
        (of(is_led=False), "error", "NoLeader", "no pod is bound"),
        (of(is_led=False, why_not_led="Lease a/b cannot be read"), "error", "NoLeader", "is bound; Lease a/b cannot"),
        (of(WatchAge("pods", 1.0, 7)), "warning", "UnreadableObjects", "7 versions"),
        (of(is_history_out_of_reach=True), "warning", "HistoryOutOfReach", "--admin-advertise-address"),
        (of(lag=Lag(2, 3, 0, 0, 0, "malformed", NOW_MS)), "error", "HistoryStoresNothing", "malformed; 5 records wait"),
        (of(lag=Lag(0, 0, 1, 2, 4, "")), "warning", "HistoryLost", "7 records are lost"),
        (of(lag=Lag(0, 0, 0, 0, 0, "", 0, NOW_MS - 1000)), "warning", "HistoryReplaced", "from before are gone"),
    ],
)
def test_each_part_has_its_alarm(health: PartHealth, severity: str, reason: str, words: str) -> None:
    (alarm,) = health.alarms
    assert (alarm.severity, alarm.reason) == (severity, reason)
    assert words in alarm.detail
    assert health.stale_since_ms == 0


def test_an_old_loss_is_not_told_for_ever() -> None:
    assert of(lag=Lag(0, 0, 0, 0, 0, "", 0, NOW_MS - 8 * 86_400_000)) == part_alarms.HEALTHY


async def test_a_replica_beside_the_leader_has_nothing_to_say(world: World) -> None:
    assert admin_service.why_no_pod_is_bound(world.seen, world.leader) == ""
    world.leader.refusal_text = f"{leadership.NOT_LEADER}: replica a does not hold Lease vgpu-system/vgpu-extender"
    assert admin_service.why_no_pod_is_bound(world.seen, world.leader) == world.leader.refusal_text  # nobody holds it
    world.cluster.leases.put(WatchedLease(leadership.LEASE, "b", "2026-01-01T00:00:00.000000Z", 10))
    assert admin_service.why_no_pod_is_bound(world.seen, world.leader) == ""
    world.clock.seconds += 11
    assert admin_service.why_no_pod_is_bound(world.seen, world.leader) == world.leader.refusal_text


async def test_a_leader_that_waits_says_so(world: World) -> None:
    world.leader.refusal_text = "LeaderHandover: waiting for the last leader's Bindings in flight"
    world.cluster.leases.put(WatchedLease(leadership.LEASE, "a", "2026-01-01T00:00:00.000000Z", 10))
    assert admin_service.why_no_pod_is_bound(world.seen, world.leader) == world.leader.refusal_text


@pytest.mark.parametrize(
    ("settings", "holder", "annotations", "is_told"),
    [
        ({}, "me", {}, False),  # also one replica with --scheduler-lease
        ({}, "", {}, False),  # NoLeader is told
        ({}, "other", {}, True),
        ({}, "other", admin_address.annotations("other", AdminAddress("https://10.0.0.1:9871", "ab")), False),
        ({"admin_advertise_address": "10.0.0.2"}, "other", {}, False),  # the other one has just started
        ({"history_url": "postgresql://vgpu@db/vgpu"}, "other", {}, False),
        ({"history_dir": None}, "other", {}, False),
    ],
)
async def test_a_history_out_of_reach_is_told_where_it_is_out_of_reach(
    world: World, settings: dict[str, Any], holder: str, annotations: dict[str, str], *, is_told: bool
) -> None:
    given = {"history_dir": "/h", "scheduler_lease": "vgpu-scheduler", "admin_listen": "[::]:9871"} | settings
    made = ExtenderSettings(admin_auth="kubernetes", **given)
    object.__setattr__(world.seen, "settings", made)
    lease = WatchedLease(leadership.LEASE, holder, "now", 10, annotations.get(names.ADMIN_ANNOTATION, ""))
    world.cluster.leases.put(lease)
    reasons = {alarm.reason for alarm in admin_service._health(world.seen, "me").alarms}
    assert ("HistoryOutOfReach" in reasons) == is_told
