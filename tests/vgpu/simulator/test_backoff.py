"""Back-off between attempts to schedule a pod."""

from datetime import UTC, datetime, timedelta

from vgpu.domain.json_types import JsonObject
from vgpu.simulator.backoff import BackoffQueue

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, second: int = 0) -> JsonObject:
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}}


def due(queue: BackoffQueue, seconds: float, *pods: JsonObject) -> list[str]:
    return [p["metadata"]["name"] for p in queue.due(pods, START + timedelta(seconds=seconds))]


def test_the_oldest_comes_first() -> None:
    assert due(BackoffQueue(), 0, pod("b", 1), pod("c", 0), pod("a", 1)) == ["c", "a", "b"]


def test_pauses_double_up_to_the_longest() -> None:
    queue, now, pauses = BackoffQueue(), START, []
    for _ in range(6):
        queue.pause("a", now)
        wait = next(n for n in range(1, 100) if queue.due([pod("a")], now + timedelta(seconds=n / 2)))
        pauses.append(wait / 2)
        now += timedelta(seconds=wait / 2)
    assert pauses == [0.5, 1, 2, 4, 4, 4]


def test_a_removed_pod_starts_with_the_shortest_pause() -> None:
    queue = BackoffQueue()
    for _ in range(3):
        queue.pause("a", START)
    assert due(queue, 1, pod("a")) == []
    queue.keep([])
    assert due(queue, 0, pod("a")) == ["a"]
    queue.pause("a", START)
    assert due(queue, 0.5, pod("a")) == ["a"]
