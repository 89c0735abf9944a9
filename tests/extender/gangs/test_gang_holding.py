"""A gang that needs every card is placed in bounded time under a stream of small pods, which take each free slice."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from msgspec import structs

from extender.state.held_room import HeldRoom
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from extender.verbs.filter import Filter
from tests import strategies
from tests.extender.conftest import Clock
from tests.extender.gangs.gangs import HOLD_AFTER_S, HOLD_S, NODES, Extender
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import Usage
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, CardUuid, NodeName
from vgpu.placement.policies import DefaultPolicies

LONGEST_LIFE_S = 40
CARDS = 4
WAKE_S = 5


@dataclass
class Stream:
    """A cluster that is always full of pods of one slice; each step takes a second."""

    random: random.Random
    hold_after_s: float = HOLD_AFTER_S
    priority: int = 0
    lives_s: tuple[int, int] = (5, LONGEST_LIFE_S)
    clock: Clock = field(default_factory=Clock)
    running: dict[str, tuple[WatchedPod, float]] = field(default_factory=dict)
    refused: set[Reason] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        self.extender = Extender(self.clock, None, self.hold_after_s)

    def pod(self, gang: str = "", priority: int = 0, **share: int) -> WatchedPod:
        self.made += 1
        annotations = {names.GANG: gang, names.GANG_SIZE: str(CARDS)} if gang else {}
        obj = strategies.pod(
            strategies.container(**share), annotations=annotations, uid=f"{gang or 'small'}{self.made}"
        )
        del obj["spec"]["nodeName"]
        obj["spec"]["priority"] = priority
        return PodReader().decoded(strategies.admit(obj))

    def gang(self, name: str) -> list[WatchedPod]:
        members = [self.pod(name, gpu=1) for _ in range(CARDS)]
        for member in members:
            self.extender.cluster.updates.upsert_pod(member)
        return members

    def ask(self, pod: WatchedPod) -> str:
        answer = asyncio.run(self.extender.filter.judge(pod, NODES, asyncio.sleep))
        if not answer.fits:
            self.refused |= answer.reasons.keys()
            return ""
        return bytes(answer.fitting()[0]).decode().strip('"')

    def bind(self, pod: WatchedPod, node: str) -> WatchedPod:
        chosen = self.extender.binder._reserve(pod, NodeName(node))
        assert not isinstance(chosen, str)
        bound = structs.replace(pod, node=node, assignment=chosen, has_started=True)
        self.extender.cluster.updates.upsert_pod(bound)
        return bound

    def step(self) -> None:
        """A second passes: small pods end, and others take what is free."""
        self.clock.seconds += 1
        for uid, (pod, until) in list(self.running.items()):
            if self.clock.seconds >= until:
                self.extender.cluster.updates.delete_pod(pod)
                del self.running[uid]
        while True:
            pod = self.pod(priority=self.priority, gpu_mem=256)
            self.extender.cluster.updates.upsert_pod(pod)
            node = self.ask(pod)
            if not node:
                self.extender.cluster.updates.delete_pod(pod)
                break
            self.running[pod.uid] = self.bind(pod, node), self.clock.seconds + self.random.randint(*self.lives_s)
        asyncio.run(self.extender.deadlines.look())

    def placed_after(self, members: list[WatchedPod], limit_s: int) -> int | None:
        """Let time pass until a gang is planned, and return the seconds; None where that takes too long."""
        for seconds in range(limit_s):
            self.step()
            if self.ask(members[0]):
                return seconds
        return None


LONGEST_WAIT_S = int(HOLD_AFTER_S) + LONGEST_LIFE_S + 2 * WAKE_S


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(2))
def test_a_gang_is_placed_when_the_pods_that_run_have_ended(seed: int) -> None:
    stream = Stream(random.Random(seed))
    stream.step()
    assert stream.placed_after(stream.gang("train"), LONGEST_WAIT_S) is not None
    assert Reason.CARD_KEPT_FOR_GANG in stream.refused
    stream.step()
    assert stream.extender.cluster.holds.now is None
    assert stream.extender.holding.outcomes["planned"] == 1
    assert stream.extender.holding.cards == 0


@pytest.mark.heavy
def test_without_kept_room_the_gang_waits_as_long_as_small_pods_come() -> None:
    stream = Stream(random.Random(0), hold_after_s=0)
    stream.step()
    assert stream.placed_after(stream.gang("train"), LONGEST_WAIT_S) is None


def test_two_gangs_that_need_every_card_are_placed_one_after_the_other() -> None:
    stream = Stream(random.Random(1))
    stream.step()
    one, two = stream.gang("one"), stream.gang("two")
    assert stream.placed_after(one, LONGEST_WAIT_S) is not None
    bound = [stream.bind(member, stream.ask(member)) for member in one]
    for _ in range(10):
        stream.step()
        assert not stream.ask(two[0])
    for member in bound:
        stream.extender.cluster.updates.delete_pod(member)
    assert stream.placed_after(two, LONGEST_WAIT_S) is not None


@pytest.mark.heavy
def test_room_is_kept_for_a_limited_time_and_then_small_pods_get_it() -> None:
    stream = Stream(random.Random(2))
    lasting = stream.pod(gpu_mem=256)
    stream.extender.cluster.updates.upsert_pod(lasting)
    stream.bind(lasting, "n1")
    members = stream.gang("train")
    kept = []
    for _ in range(450):
        stream.step()
        kept.append(stream.extender.cluster.holds.now is not None)
    assert not stream.ask(members[0])
    holds = sum(now and not before for before, now in zip([False, *kept], kept, strict=False))
    assert holds == 2  # after 60 s; the second after the back-off of twice the time
    assert HOLD_S <= kept.index(False, kept.index(True)) - kept.index(True) <= HOLD_S + 2
    waits = stream.extender.tracker.why((DEFAULT_NAMESPACE, members[0].parsed.gang.source, "train"))  # type: ignore[union-attr]
    assert waits is not None
    assert "so room on 4 cards is kept free for it until 1970-01-01T00:02:00+00:00 at most" in waits[1]


@pytest.mark.heavy
def test_no_room_is_kept_against_pods_of_higher_priority() -> None:
    stream = Stream(random.Random(3), priority=10)
    stream.step()
    assert stream.placed_after(stream.gang("train"), LONGEST_WAIT_S) is None
    assert stream.extender.holding.cards == CARDS
    assert Reason.CARD_KEPT_FOR_GANG not in stream.refused


def test_a_gang_that_never_fits_keeps_nothing_and_says_so() -> None:
    stream = Stream(random.Random(4))
    stream.step()
    members = [stream.pod("huge", gpu=2) for _ in range(CARDS)]
    for member in members:
        stream.extender.cluster.updates.upsert_pod(member)
    assert stream.placed_after(members, int(HOLD_AFTER_S) + 5) is None
    assert stream.extender.holding.cards == 0
    assert stream.extender.holding.outcomes["impossible"] == 1
    waits = stream.extender.tracker.why((DEFAULT_NAMESPACE, members[0].parsed.gang.source, "huge"))  # type: ignore[union-attr]
    assert waits is not None
    assert "does not fit the cluster's cards even when all of them are free" in waits[1]


def test_a_pod_is_refused_for_kept_room_and_a_pod_is_not_bound_to_it() -> None:
    extender = Extender(Clock(), None)
    whole = {name: {CardUuid(f"GPU-{name}-{card}"): Usage(wholes=1) for card in range(2)} for name in NODES}
    extender.cluster.holds.now = HeldRoom((DEFAULT_NAMESPACE, GangSource.ANNOTATION, "train"), 0, whole)
    pod = Stream(random.Random(0)).pod(gpu_mem=256)
    refused = Filter(extender.cluster, DefaultPolicies()).nodes(pod, NODES).refused
    assert {name: refusal.reason for name, refusal in refused.items()} == dict.fromkeys(
        NODES, Reason.CARD_KEPT_FOR_GANG
    )
    assert str(extender.binder._reserve(pod, NodeName("n1"))).startswith("CardKeptForGang: ")
    extender.cluster.holds.now = None
    assert not Filter(extender.cluster, DefaultPolicies()).nodes(pod, NODES).refused
