"""Affinity between pods on one card: beside, apart in both directions, within a namespace, and while pods are bound."""

from typing import Any

import pytest
from msgspec import structs

from extender.state.beside.card_neighbours import CardNeighbours
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

BESIDE, APART = names.GPU_AFFINITY, names.GPU_ANTI_AFFINITY
AFFINITY = "CardAffinity: no card has the pods on it that the pod must be beside"
NO_LABELS = ("", "app", "=a", "app=a,", "app==a", "a b=c", "x=" + "y" * 64, ",".join(["a=b"] * 9))


def pod(uid: str, card: str = "", namespace: str = "default", labels: str = "", **annotations: str) -> WatchedPod:
    """A pod, on a card where one is named. Labels as `a=1,b=2`; annotations `beside` and `apart` likewise."""
    named = {{"beside": BESIDE, "apart": APART}[name]: value for name, value in annotations.items()}
    made = PodReader().decoded(strategies.pod(strategies.container(gpu_mem=256), uid=uid, annotations=named))
    scheduling = structs.replace(made.scheduling, labels=dict(label.split("=") for label in labels.split(",") if label))
    made = structs.replace(made, namespace=namespace, scheduling=scheduling)
    return (
        structs.replace(
            made, node="n1", assignment=Assignment({ContainerName("main"): (Grant(CardUuid(card), 256, None),)})
        )
        if card
        else made
    )


def chosen(asking: WatchedPod, *others: WatchedPod, binding: tuple[WatchedPod, ...] = ()) -> CardSelector:
    in_flight = [(pod, pod.assignment) for pod in binding if isinstance(pod.assignment, Assignment)]
    kept = CardNeighbours(lambda: in_flight)
    for other in others:
        kept.put(other)
    found = kept.request(asking)
    assert found is not None
    return found.options.selector


def test_a_pod_without_affinity_beside_pods_without_asks_for_what_it_asked_for() -> None:
    asking, kept = pod("a", labels="app=x"), CardNeighbours(list)
    kept.put(pod("b", "GPU-0", labels="app=x"))
    assert kept.request(asking) is asking.parsed.request


def test_a_pod_is_beside_the_pods_with_all_labels_of_its_namespace() -> None:
    others = (
        pod("b", "GPU-0", labels="app=x,tier=1"), pod("c", "GPU-1", labels="app=x"),
        pod("d", "GPU-2", labels="app=x,tier=1", namespace="other"), pod("e", labels="app=x,tier=1"),
    )  # fmt: skip
    assert chosen(pod("a", beside="app=x,tier=1"), *others).beside == frozenset({"GPU-0"})
    assert chosen(pod("a", beside="app=y"), *others).beside == frozenset()


def test_the_first_pod_of_its_own_kind_may_be_anywhere() -> None:
    first = pod("a", beside="app=x", labels="app=x")
    assert chosen(first).beside is None
    assert chosen(first, pod("b", "GPU-0", labels="app=x")).beside == frozenset({"GPU-0"})
    assert chosen(pod("a", beside="app=x", labels="app=y")).beside == frozenset()


def test_anti_affinity_counts_in_both_directions() -> None:
    online, batch = pod("b", "GPU-0", labels="class=online"), pod("c", "GPU-1", apart="class=online")
    assert chosen(pod("a", apart="class=online"), online, batch).apart == frozenset({"GPU-0"})
    assert chosen(pod("a", labels="class=online"), online, batch).apart == frozenset({"GPU-1"})
    assert chosen(pod("a", labels="class=other"), online, batch).apart == frozenset()


def test_pods_that_are_being_bound_count_and_a_pod_is_no_neighbour_of_itself() -> None:
    online = pod("b", "GPU-0", labels="class=online", apart="class=online")
    assert chosen(pod("a", labels="class=online"), binding=(online,)).apart == frozenset({"GPU-0"})
    assert chosen(pod("b", labels="class=online", apart="class=online"), online, binding=(online,)).apart == frozenset()


def test_pods_that_ended_or_are_gone_are_no_neighbours() -> None:
    kept, online = CardNeighbours(list), pod("b", "GPU-0", labels="x=1", apart="y=1")
    asking = pod("a", apart="x=1", labels="y=1")
    for has_ended in (True, False):
        kept.put(online)
        if has_ended:
            kept.put(structs.replace(online, is_terminal=True))
        else:
            kept.remove(PodUid("b"))
        found = kept.request(asking)
        assert found is not None
        assert found.options.selector.apart == frozenset()
    assert (kept._holders, kept._repelling, kept._namespaces) == ({}, {}, {})


async def placed(world: World, annotations: dict[str, str], labels: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Create a pod and return it with the nodes that fit it."""
    created = await world.create_pod(metadata={"annotations": annotations, "labels": labels}, gpu_mem=256)
    return created, (await world.filter(created, "n1", "n2", "n3"))["NodeNames"] or []


async def test_the_verbs_place_by_affinity(world: World) -> None:
    online, fits = await placed(world, {APART: "class=offline"}, {"class": "online"})
    assert fits == ["n1", "n2", "n3"]
    assert await world.bind(online, "n2") == ""
    beside, fits = await placed(world, {BESIDE: "class=online"}, {})
    assert fits == ["n2"]  # while the first pod's Binding is not seen yet
    assert await world.bind(beside, "n1") == AFFINITY
    assert await world.bind(beside, "n2") == ""
    for _ in range(2):
        offline, fits = await placed(world, {}, {"class": "offline"})
        assert fits == ["n1", "n2", "n3"]
        assert await world.bind(offline, "n2") == ""
    await world.until_bound_is_watched(offline)
    used = world.used_slices("n2")
    assert sorted(used) == [2, 2]
    answer = await world.filter((await placed(world, {BESIDE: "class=none"}, {}))[0], "n1")
    assert answer["FailedAndUnresolvableNodes"] == {"n1": AFFINITY}


@pytest.mark.parametrize("value", NO_LABELS)
def test_what_are_no_labels_is_refused_by_name(value: str) -> None:
    (problem,) = pod("a", beside=value).parsed.problems
    assert problem.field == f"metadata.annotations[{BESIDE}]"
    assert "KEY=VALUE" in str(problem)


def member(uid: str, card: str = "", gang: str = "train", own: bool = True, namespace: str = "default") -> WatchedPod:
    annotations = {names.GANG: gang, names.GANG_SIZE: "2", **({names.GANG_CARDS: "own"} if own else {})}
    made = PodReader().decoded(strategies.pod(strategies.container(gpu_mem=256), uid=uid, annotations=annotations))
    held = Assignment({ContainerName("main"): (Grant(CardUuid(card), 256, None),)}) if card else made.assignment
    return structs.replace(made, namespace=namespace, node="n1" if card else "", assignment=held)


def test_a_member_with_cards_of_its_own_is_on_no_card_of_another_member_of_its_gang() -> None:
    """As a replacement of a lost rank, or one more rank of an elastic gang, which is placed by itself."""
    others = (
        member("b", "GPU-0"), member("c", "GPU-1", gang="other"), member("d", "GPU-2", namespace="other"),
        pod("e", "GPU-3"),
    )  # fmt: skip
    assert chosen(member("a"), *others).apart == frozenset({"GPU-0"})
    assert chosen(member("a", "GPU-0"), member("a", "GPU-0")).apart == frozenset()


def test_one_of_two_members_may_want_cards_of_its_own() -> None:
    assert chosen(member("a", own=False), member("b", "GPU-0")).apart == frozenset({"GPU-0"})
    assert chosen(member("a"), member("b", "GPU-0", own=False)).apart == frozenset({"GPU-0"})
    assert chosen(member("a", own=False), member("b", "GPU-0", own=False)).apart == frozenset()


def test_members_that_are_being_bound_count_and_members_that_are_gone_do_not() -> None:
    assert chosen(member("a"), binding=(member("b", "GPU-0"),)).apart == frozenset({"GPU-0"})
    kept, asking = CardNeighbours(list), member("a")
    kept.put(member("b", "GPU-0"))
    kept.remove(PodUid("b"))
    assert kept.request(asking) is asking.parsed.request
