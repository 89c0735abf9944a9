"""Event streams: differences of snapshots, bounded queues, bounded numbers."""

import asyncio
from dataclasses import replace
from http import HTTPStatus

import pytest

from extender.admin.answers import event_streams
from extender.admin.answers.event_response import EventResponse
from extender.admin.answers.event_streams import ClientStream, StreamEvent, Streams
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from extender.state.pod_reader import PodReader
from tests import strategies
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.placement.snapshot import NodeView


def snapshot(number: int, *pods: str, nodes: int = 1, blocked: Reason | None = None) -> ClusterSnapshot:
    made = {
        PodUid(uid): PodReader().decoded(strategies.pod(strategies.container(gpu_mem=256), uid=uid)) for uid in pods
    }
    state = strategies.node_state(strategies.card(0))
    return ClusterSnapshot(
        number, made, {}, {NodeName(f"n{n}"): NodeView(NodeName(f"n{n}"), state, blocked) for n in range(nodes)}
    )


def said(before: ClusterSnapshot, after: ClusterSnapshot) -> list[tuple[str, str]]:
    return [
        (change.kind, change.frame.decode().split('"type":"')[1].split('"')[0])
        for change in event_streams.changes(before, after)
    ]


def test_changes_between_snapshots() -> None:
    assert said(snapshot(1, "a"), snapshot(2, "a")) == []
    assert said(snapshot(1, "a"), snapshot(2, "a", "b")) == [("pod", "ADDED")]
    assert said(snapshot(1, "a"), snapshot(2)) == [("pod", "DELETED")]
    assert said(snapshot(1), snapshot(2, nodes=2)) == [("node", "ADDED"), ("gpu", "ADDED")]
    assert said(snapshot(1, nodes=2), snapshot(2)) == [("node", "DELETED")]
    assert said(snapshot(1), snapshot(2, blocked=Reason.PLUGIN_AWAY)) == [
        ("node", "MODIFIED"), ("gpu", "MODIFIED"),
    ]  # fmt: skip


def test_pods_that_ask_for_no_card_change_nothing() -> None:
    plugin = PodReader().decoded(strategies.pod(strategies.container(), uid="plugin"))
    without, beside = snapshot(1, "a"), replace(snapshot(2, "a"), pods={**snapshot(2, "a").pods, plugin.uid: plugin})
    assert said(without, beside) == said(beside, without) == []


def test_a_stream_that_is_not_read_is_full_and_holds_nothing() -> None:
    stream = ClientStream("me", lambda change: change.namespace != "hidden")
    stream.put(StreamEvent("pod", Namespace("hidden"), b"x"))
    assert not stream.queue
    for _ in range(event_streams.MAX_QUEUED + 1):
        stream.put(StreamEvent("pod", Namespace("default"), b"x"))
    assert (stream.is_full, len(stream.queue)) == (True, 0)


async def test_the_number_of_streams_is_bounded_by_caller_and_in_all() -> None:
    async def never() -> ClusterSnapshot:
        await asyncio.sleep(3600)
        return ClusterSnapshot(0)

    opened = Streams(never, most=60)
    own = [opened.open("ann", lambda _: True, is_local=False) for _ in range(event_streams.MAX_OF_CALLER)]
    with pytest.raises(AdminProblem, match="50 event streams of yours"):
        opened.open("ann", lambda _: True, is_local=False)
    more = [opened.open("local", lambda _: True, is_local=True) for _ in range(10)]
    with pytest.raises(AdminProblem, match="60 in all"):
        opened.open("bob", lambda _: True, is_local=False)
    for stream in (*own, *more):
        opened.close(stream)
    assert len(opened) == 0


async def answer(stream: ClientStream, *, allowed: bool = True, stuck_after: int = 1000) -> list[bytes]:
    """Return what a response writes until its end."""
    written: list[bytes] = []

    async def send(message: dict[str, object]) -> None:
        if len(written) >= stuck_after:
            await asyncio.sleep(3600)
        if message["type"] == "http.response.body":
            written.append(message["body"])  # type: ignore[arg-type]

    async def receive() -> dict[str, object]:
        await asyncio.sleep(3600)
        return {}

    async def still_allowed() -> bool:
        return allowed

    closed: list[ClientStream] = []
    await EventResponse(stream, still_allowed, closed.append)({}, receive, send)  # type: ignore[arg-type]
    assert closed == [stream]
    return written


async def test_a_full_stream_ends_with_overflow() -> None:
    stream = ClientStream("me", lambda _: True)
    stream.is_full = True
    assert await answer(stream) == [b"retry: 2000\n\n", b"event: overflow\ndata: {}\n\n"]


async def test_a_stream_of_a_caller_without_rights_ends_with_the_next_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.admin.answers.event_response.HEARTBEAT_S", 0.01)
    assert (await answer(ClientStream("me", lambda _: True), allowed=False))[-1] == b"event: expired\ndata: {}\n\n"


async def test_a_client_that_takes_no_data_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.admin.answers.event_response.SEND_TIMEOUT_S", 0.01)
    stream = ClientStream("me", lambda _: True)
    stream.put(StreamEvent("pod", Namespace("default"), b"x"))
    assert await answer(stream, stuck_after=1) == [b"retry: 2000\n\n"]


async def test_streams_go_on_when_a_snapshot_fails() -> None:
    failed = AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, "not ready")
    made: list[ClusterSnapshot | AdminProblem] = [snapshot(1), failed, snapshot(2, "a")]

    async def take() -> ClusterSnapshot:
        found = made.pop(0) if made else snapshot(3, "a")
        if isinstance(found, AdminProblem):
            raise found
        return found

    async def sleep(_: float) -> None:
        await asyncio.sleep(0)

    opened = Streams(take, sleep)
    stream = opened.open("me", lambda _: True, is_local=True)
    async with asyncio.timeout(5):
        await stream.woken.wait()
    assert [event.kind for event in stream.queue] == ["pod"]
    opened.close(stream)
