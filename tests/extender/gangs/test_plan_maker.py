"""A gang is planned with pauses, in which the cluster changes: what is reserved at last fits."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from extender.gangs import time_slices
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import Clock
from tests.extender.gangs.gangs import NODES, Extender, node
from vgpu.domain import names
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName


@pytest.fixture(autouse=True)
def _a_pause_after_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "SLICE_S", -1.0)


def pod(uid: str, gang: str = "", size: int = 0, **share: int) -> WatchedPod:
    annotations = {names.GANG: gang, names.GANG_SIZE: str(size)} if gang else {}
    obj = strategies.pod(strategies.container(**share), annotations=annotations, uid=uid)
    del obj["spec"]["nodeName"]
    return PodReader().decoded(strategies.admit(obj))


def planned(extender: Extender, members: list[WatchedPod], step: int, change: Any) -> str:
    """Ask about the first member; `change` happens in the pause of this number. Return the node, or the reason."""
    count = 0

    async def pause(_seconds: float) -> None:
        nonlocal count
        count += 1
        if count == step:
            change()

    for member in members:
        extender.cluster.updates.upsert_pod(member)
    answer = asyncio.run(extender.filter.judge(members[0], NODES, pause))
    assert count >= step, "the change happened"
    fitting = [bytes(name).decode().strip('"') for name in answer.fitting()]
    return fitting[0] if fitting else str(next(iter(answer.reasons)))


def taken_on(extender: Extender, name: str, bound: list[WatchedPod]) -> usage.Usages:
    held: list[Any] = [
        (reservation.request, reservation.assignment)
        for reservation in extender.cluster.reservations.on(NodeName(name))
    ]
    held += [(member.parsed.request, member.assignment) for member in bound if member.node == name]
    return usage.on_node(node(name), held)


@pytest.mark.parametrize("step", range(1, 11))
def test_a_card_that_is_taken_in_a_pause_is_not_planned(step: int) -> None:
    extender = Extender(Clock(), None)
    taken = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-n1-0"), 256, 0),)})
    other = structs.replace(pod("other", gpu_mem=256), node="n1", assignment=taken, has_started=True)
    members = [pod(f"m{n}", "train", 3, gpu=1) for n in range(3)]
    found = planned(extender, members, step, lambda: extender.cluster.updates.upsert_pod(other))
    assert found in NODES
    assert len(extender.cluster.reservations) == 3
    for name in NODES:
        for used in taken_on(extender, name, [other]).values():
            assert used.wholes + (used.shares > 0) <= 1


@pytest.mark.parametrize("step", [1, 5, 9])
def test_a_member_that_is_deleted_in_a_pause_ends_the_plan(step: int) -> None:
    extender = Extender(Clock(), None)
    members = [pod(f"m{n}", "train", 3, gpu=1) for n in range(3)]
    found = planned(extender, members, step, lambda: extender.cluster.updates.delete_pod(members[2]))
    assert found == "GangWaits"
    assert len(extender.cluster.reservations) == 0


def test_a_plan_that_is_completed_in_part_is_given_up_when_the_member_asked_about_goes() -> None:
    extender = Extender(Clock(), None)
    members = [pod(f"m{n}", "train", 3, gpu=1) for n in range(4)]
    taken = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-n1-0"), 256, 0),)})
    other = structs.replace(pod("other", gpu_mem=256), node="n1", assignment=taken, has_started=True)
    count = 0

    async def pause(_seconds: float) -> None:
        nonlocal count
        count += 1
        if count == 8:
            extender.cluster.updates.upsert_pod(other)
        if count > 8 and len(extender.cluster.reservations):  # in the second round
            extender.cluster.updates.delete_pod(members[0])

    for member in members:
        extender.cluster.updates.upsert_pod(member)
    answer = asyncio.run(extender.filter.judge(members[0], NODES, pause))
    assert not answer.fits
    assert members[0].uid not in extender.cluster.objects.pods
    assert len(extender.cluster.reservations) == 0


def test_two_gangs_that_are_asked_about_at_once_are_planned_one_after_the_other() -> None:
    extender = Extender(Clock(), None)
    gangs = {gang: [pod(f"{gang}{n}", gang, 3, gpu=1) for n in range(3)] for gang in ("one", "two")}
    for member in (*gangs["one"], *gangs["two"]):
        extender.cluster.updates.upsert_pod(member)

    async def ask() -> list[bool]:
        calls = (extender.filter.judge(pods[0], NODES, asyncio.sleep) for pods in gangs.values())
        return [answer.fits for answer in await asyncio.gather(*calls)]

    assert sorted(asyncio.run(ask())) == [False, True]
    assert len(extender.cluster.reservations) == 3
