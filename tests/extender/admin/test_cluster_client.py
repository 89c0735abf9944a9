"""Snapshots and questions over a socket, as between the admin's process and the extender's."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.admin.exchange import snapshot_pieces, snapshots
from extender.admin.exchange.cluster_client import FRAME_S, ClusterClient
from extender.admin.exchange.cluster_server import ClusterServer
from extender.admin.exchange.snapshot_pieces import Mirror
from extender.admin.exchange.snapshots import ClusterSnapshot, SnapshotNotReady, Snapshots
from extender.admin.problems import AdminProblem
from extender.admin.security.audit import AuditedAction
from extender.explain.last_decisions import LastDecision
from extender.state.held_room import HeldRoom
from tests.extender.admin.conftest import shown
from tests.extender.conftest import World
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, CardUuid, NodeName, PodUid
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView


@asynccontextmanager
async def linked(
    source: Any,
    acted: Any = lambda _: None,
    clock: Any = time.monotonic,
    sleep: Any = asyncio.sleep,
    frame_s: float = FRAME_S,
) -> AsyncIterator[ClusterClient]:
    """A client of a source in this process."""
    ours, theirs = socket.socketpair()
    answering = await asyncio.open_connection(sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    serving = asyncio.create_task(ClusterServer(source, clock, acted, sleep).serve(*answering))
    client = ClusterClient(reader, writer, frame_s)
    receiving = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        writer.close()
        answering[1].close()
        for task in (serving, receiving):
            task.cancel()
        await asyncio.gather(serving, receiving, return_exceptions=True)


async def test_snapshots_are_those_of_the_extender_after_every_change(world: World) -> None:
    source = Snapshots(shown(world))
    async with linked(source) as client:
        for n in range(40):
            await world.create_pod(gpu_mem=256 + n)
        first = await client.take()
        assert first == replace(await source.take(), number=first.number, policies=first.policies)
        pod = await world.create_pod(gpu_mem=1024)
        assert not await world.bind(pod, "n1")
        await world.until_bound_is_watched(pod)
        gone = next(iter(first.pods.values()))
        await world.client.delete(f"/api/v1/namespaces/default/pods/{gone.name}")
        await world.until(lambda: gone.uid not in world.cluster.objects.pods)
        second = await client.take()
        assert second == replace(await source.take(), number=second.number, policies=second.policies)
        assert gone.uid in first.pods, "a snapshot stays as it is"
        assert second.views[NodeName("n2")] is first.views[NodeName("n2")], "an unchanged node is not sent again"
        assert second.views[NodeName("n1")] != first.views[NodeName("n1")]


async def test_questions(world: World) -> None:
    world.leader.refusal_text = "another one binds"
    actions: list[AuditedAction] = []
    async with linked(Snapshots(shown(world)), actions.append) as client:
        snapshot = await client.take()
        assert snapshot.why_not_bound == "another one binds"
        for n in range(40):
            await world.create_pod(gpu_mem=256 + n)
        pods = list((await client.take()).pods.values())
        asked = await asyncio.gather(client.requests(pods), client.reserved(pods[0]), client.why_gangs_wait([]))
        assert asked[0] == [pod.parsed.request for pod in pods]
        assert (dict(asked[1]), dict(asked[2])) == ({}, {})
        action = AuditedAction("2026-01-01T00:00:00Z", "ann", (), "cordon", CardUuid("GPU-1"), NodeName("n1"), "done")
        client.acted(action)
        await client.take()
        assert actions == [action]


RESERVED = {"node": NodeRefusal(Reason.CARD_RESERVED, {CardUuid("pod"): Reason.CARD_RESERVED})}


class Slow:
    """A source whose snapshots come when the test lets them."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.number = 0

    async def take(self) -> ClusterSnapshot:
        await self.let.wait()
        self.number += 1
        return ClusterSnapshot(self.number)

    async def reserved(self, pod: Any) -> dict[str, Any]:
        return {"node": NodeRefusal(Reason.CARD_RESERVED, {pod: Reason.CARD_RESERVED})}


async def test_a_client_that_goes_takes_no_answer_of_another_one() -> None:
    source = Slow()
    async with linked(source) as client:
        first = asyncio.create_task(client.take())
        await asyncio.sleep(0.05)
        first.cancel()
        other = asyncio.create_task(client.reserved("pod"))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        source.let.set()
        assert await other == RESERVED
        assert (await client.take()).number == 2


async def test_without_an_answer_in_time_the_socket_is_closed() -> None:
    async with linked(Slow(), frame_s=0.05) as client:
        for _ in range(2):
            with pytest.raises(AdminProblem, match="does not answer"):
                await client.take()


async def test_that_the_lists_are_not_complete_is_passed_on() -> None:
    class Starting(Slow):
        async def take(self) -> ClusterSnapshot:
            raise SnapshotNotReady("the first lists are not complete")

    async with linked(Starting()) as client:
        with pytest.raises(SnapshotNotReady, match="not complete"):
            await client.take()
        assert await client.reserved("pod") == RESERVED  # type: ignore[arg-type]


STATES = [NodeState.of(Node(NodeName(f"n{n}"), 256, ()), {}, {}) for n in range(3)]
VIEWS = [NodeView(NodeName("n"), state, None, {"slices": n}) for n in range(2) for state in STATES]
DECISIONS = [LastDecision(n, 1, {}) for n in range(3)]
KEYS = st.sampled_from("abcdefgh")
GANG = (DEFAULT_NAMESPACE, GangSource.ANNOTATION, "train")
HELD = [{CardUuid("GPU-1"): Usage(slices=n)} for n in range(2)]
SNAPSHOTS = st.builds(
    ClusterSnapshot,
    number=st.integers(1, 9),
    views=st.dictionaries(KEYS, st.sampled_from(VIEWS)),
    decisions=st.dictionaries(KEYS, st.sampled_from(DECISIONS)),
    why_not_bound=st.sampled_from(["", "no"]),
    held=st.none() | st.builds(HeldRoom, st.just(GANG), st.just(0), st.dictionaries(KEYS, st.sampled_from(HELD))),
    impossible_gangs=st.sampled_from([{}, {GANG: 1}]),
    policies=st.just(DefaultPolicies()),
)


@given(st.lists(SNAPSHOTS, max_size=5))
def test_the_copy_is_the_snapshot_whatever_has_changed(made: list[ClusterSnapshot]) -> None:
    mirror, before = Mirror(), ClusterSnapshot(0)
    for after in made:
        for piece in snapshot_pieces.pieces(before, after):
            if piece is not None:
                assert len(piece.changed) <= snapshot_pieces.PER_PIECE
                mirror.apply(piece)
        copy = mirror.take(snapshot_pieces.taken(before, after))
        assert replace(copy, policies=after.policies) == after
        before = after


def test_a_model_that_was_seen_since_goes_to_the_copy() -> None:
    policies = DefaultPolicies()
    before = ClusterSnapshot(1, policies=replace(policies, models=policies.models.copy()))
    policies.models.bit("H200")
    after = ClusterSnapshot(2, policies=replace(policies, models=policies.models.copy()))
    sent = snapshot_pieces.taken(before, after).policies
    assert sent is not None
    assert sent.models.names == ("H200",)
    assert snapshot_pieces.taken(after, after).policies is None


class Busy:
    """A clock that work moves on, and what rests: the longest time without a rest is what a verb can wait for."""

    STEP_S = snapshots.SLICE_S / 2

    def __init__(self) -> None:
        self.seconds = self.rested = self.longest = 0.0

    def __call__(self) -> float:
        self.seconds += self.STEP_S
        return self.seconds

    async def sleep(self, _: float) -> None:
        self.longest = max(self.longest, self.seconds - self.rested)
        self.rested = self.seconds
        await asyncio.sleep(0)


def numbered(count: int) -> dict[PodUid, Any]:
    return {PodUid(f"{n}"): n for n in range(count)}


async def test_the_verbs_loop_rests_after_each_slice_of_a_snapshot() -> None:
    busy, pods = Busy(), numbered(5000)
    made = iter([ClusterSnapshot(1, pods=pods), ClusterSnapshot(2, pods=pods)])

    class Source(Slow):
        async def take(self) -> ClusterSnapshot:
            await busy.sleep(0)
            busy.seconds += snapshots.SLICE_S
            return next(made)

    async with linked(Source(), clock=busy, sleep=busy.sleep) as client:
        for number in (1, 2):
            busy.longest = 0.0
            assert (await client.take()).number == number
            assert 0.0 < busy.longest <= snapshots.SLICE_S + 2 * busy.STEP_S


def test_what_is_gone_is_looked_for_only_where_something_is() -> None:
    pods = numbered(snapshot_pieces.PER_LOOK)
    before, same, fewer = (
        ClusterSnapshot(n, pods=shown_pods)
        for n, shown_pods in enumerate((pods, dict(pods), dict(list(pods.items())[:1])))
    )
    assert list(snapshot_pieces.pieces(before, same)) == [None]
    gone = [key for piece in snapshot_pieces.pieces(before, fewer) if piece is not None for key in piece.gone]
    assert sorted(gone) == sorted(pods.keys() - {"0"})
