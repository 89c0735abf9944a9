"""Whom the kubelet is admitting, over what it lists and what the watch knows."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import candidates
from deviceplugin.candidates import Candidate
from tests.strategies import container
from tests.vgpu.node.builders import bound, plain, sidecar, slices
from vgpu import names
from vgpu.node.pods import BoundPod


def nobody(_: str, __: str) -> bool:
    return False


def listing(*pods: BoundPod, **held: frozenset[str]) -> dict[Any, Any]:
    """What is listed: `held` by the pod's name for its container main, others hold nothing."""
    return {pod.key: {"main": {names.SLICE: held.get(pod.name, frozenset())}} for pod in pods}


def choose(pods: list[BoundPod], listed: dict[Any, Any], size: int = 4, given: Any = nobody) -> Candidate | None:
    return candidates.choose(names.SLICE, size, pods, listed, given)


def who(choice: Candidate | None) -> tuple[str, str, bool] | None:
    if choice is None:
        return None
    return choice.pod.name, choice.device_request.container, choice.is_doubtful


def test_the_one_listed_pod_that_holds_nothing_is_being_admitted() -> None:
    served, waiting, later = bound("served"), bound("waiting"), bound("later")
    listed = listing(served, waiting, served=slices(0, 0, 1, 2, 3))
    assert who(choose([served, waiting, later], listed)) == ("waiting", "main", False)


def test_admitted_pods_come_only_when_nobody_else_waits() -> None:
    admitted = replace(bound("admitted"), is_admitted=True)
    fresh = bound("fresh", order=9)
    assert who(choose([admitted, fresh], listing(admitted, fresh))) == ("fresh", "main", False)
    assert who(choose([admitted], listing(admitted))) == ("admitted", "main", True)


def test_of_two_that_wait_the_right_size_wins_then_the_first_to_come_and_it_is_doubtful() -> None:
    small, first, second = (bound(name, order=n) for n, name in enumerate(("small", "first", "second")))
    small = replace(small, device_requests=(replace(small.device_requests[0], amount=1),))
    assert who(choose([second, small, first], listing(small, second, first))) == ("first", "main", True)


def test_a_lone_pod_of_another_size_is_doubtful() -> None:
    assert who(choose([bound("a")], listing(bound("a")), size=3)) == ("a", "main", True)


def test_nobody_waits() -> None:
    over = replace(bound("over"), is_terminal=True)
    assert choose([over, plain("plain")], listing(over, plain("plain"))) is None
    assert choose([bound("unlisted")], {}) is None


def test_strangers_are_listed_and_not_watched() -> None:
    known, stranger = bound("known"), bound("stranger")
    assert candidates.unknown_pods([known], listing(known, stranger)) == {stranger.key}


def test_containers_of_a_pod_come_in_the_kubelets_order() -> None:
    pod = bound(
        "p",
        container("one", gpu_mem=1024),
        container("two", gpu_mem=256),
        init=(sidecar("side", gpu_mem=256), container("init", gpu_mem=512)),
    )
    given: set[str] = set()
    held: dict[str, dict[str, frozenset[str]]] = {}
    seen = []
    for _ in pod.device_requests:
        choice = choose([pod], {pod.key: held}, given=lambda _, name: name in given)
        assert choice is not None
        seen.append(choice.device_request.container)
        if choice.device_request.container == "init":
            given.add("init")
        else:
            held[choice.device_request.container] = {names.SLICE: slices(0, len(seen))}
    assert seen == ["side", "init", "one", "two"]
    assert choose([pod], {pod.key: held}, given=lambda _, name: name in given) is None


def test_an_init_container_is_served_when_a_later_one_holds_even_if_forgotten() -> None:
    pod = bound("p", container("one", gpu_mem=512), container("two", gpu_mem=256), init=(container("i", gpu_mem=512),))
    listed = {pod.key: {"one": {names.SLICE: slices(0, 1, 2)}}}
    assert who(choose([pod], listed, size=1)) == ("p", "two", False)


@given(st.data())
def test_one_pod_at_a_time_is_always_found(data: st.DataObject) -> None:
    """However many pods are bound, served or over: the one listed without IDs is chosen, without doubt."""
    pods = [bound(f"p{n}", order=n) for n in range(data.draw(st.integers(1, 6)))]
    target = data.draw(st.integers(0, len(pods) - 1))
    listed, watched = {}, []
    for n, pod in enumerate(pods):
        state = "target" if n == target else data.draw(st.sampled_from(["unlisted", "served", "over"]))
        admitted = state == "served" and data.draw(st.booleans())
        watched.append(replace(pod, is_terminal=state == "over", is_admitted=admitted))
        if state in {"served", "target"}:
            ids = slices(0, n) if state == "served" else frozenset[str]()
            listed[pod.key] = {"main": {names.SLICE: ids}}
    assert who(choose(data.draw(st.permutations(watched)), listed)) == (f"p{target}", "main", False)
