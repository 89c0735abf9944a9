"""What is wrong with the extender's own parts, and since when its answers are old."""

import pytest

from extender import admin_service
from extender.admin.exchange import part_alarms
from extender.admin.exchange.part_alarms import PartHealth, WatchAge
from extender.history.lag import Lag
from extender.lead import leadership
from extender.state.objects import WatchedLease
from tests.extender.conftest import World

NOW_MS = 1_800_000_000_000
WELL = Lag(0, 0, 0, 0, 0, "")


def of(
    *watches: WatchAge,
    lag: Lag | None = WELL,
    is_led: bool = True,
    has_own_history: bool = False,
    why_not_led: str = "",
) -> PartHealth:
    return part_alarms.health(
        watches, lag, is_led=is_led, now_ms=NOW_MS, has_own_history=has_own_history, why_not_led=why_not_led
    )


def test_nothing_is_wrong() -> None:
    assert of(WatchAge("pods", 100.0), WatchAge("leases", 5.0), WatchAge("podgroups", None)) == part_alarms.HEALTHY
    assert of(lag=None, has_own_history=True) == part_alarms.HEALTHY


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
        (of(has_own_history=True), "warning", "HistoryPerReplica", "differ from call to call"),
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
