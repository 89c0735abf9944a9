"""Which container the kubelet is admitting, by its list and the watched pods."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import candidates
from deviceplugin.candidates import AdmissionCandidate
from tests.strategies import container
from tests.vgpu.node.builders import bound, plain, sidecar, slices
from vgpu.domain import names
from vgpu.node.containers.bound_pod import BoundPod


def never_served(_: str, __: str) -> bool:
    return False


def listing(*pods: BoundPod, **held: frozenset[str]) -> dict[Any, Any]:
    """The kubelet's list of these pods: `held` are the IDs of the container `main` by pod name."""
    return {pod.key: {"main": {names.SLICE: held.get(pod.name, frozenset())}} for pod in pods}


def choose(
    pods: list[BoundPod], listed: dict[Any, Any], size: int = 4, is_served: Any = never_served
) -> AdmissionCandidate | None:
    return candidates.choose(names.SLICE, size, pods, listed, is_served)


def summary(choice: AdmissionCandidate | None) -> tuple[str, str, bool] | None:
    if choice is None:
        return None
    return choice.pod.name, choice.device_request.container, choice.is_doubtful


def test_the_one_listed_pod_that_holds_nothing_is_being_admitted() -> None:
    served, waiting, later = bound("served"), bound("waiting"), bound("later")
    listed = listing(served, waiting, served=slices(0, 0, 1, 2, 3))
    assert summary(choose([served, waiting, later], listed)) == ("waiting", "main", False)


def test_an_admitted_pod_is_chosen_only_if_no_other_waits() -> None:
    admitted = replace(bound("admitted"), is_admitted=True)
    fresh = bound("fresh", order=9)
    assert summary(choose([admitted, fresh], listing(admitted, fresh))) == ("fresh", "main", False)
    assert summary(choose([admitted], listing(admitted))) == ("admitted", "main", True)


def test_of_two_waiting_pods_the_right_size_wins_then_watch_order_and_the_choice_is_doubtful() -> None:
    small, first, second = (bound(name, order=n) for n, name in enumerate(("small", "first", "second")))
    small = replace(small, device_requests=(replace(small.device_requests[0], amount=1),))
    assert summary(choose([second, small, first], listing(small, second, first))) == ("first", "main", True)


def test_a_single_waiting_pod_of_another_size_is_doubtful() -> None:
    assert summary(choose([bound("a")], listing(bound("a")), size=3)) == ("a", "main", True)


def test_without_a_waiting_pod_none_is_chosen() -> None:
    over = replace(bound("over"), is_terminal=True)
    assert choose([over, plain("plain")], listing(over, plain("plain"))) is None
    assert choose([bound("unlisted")], {}) is None


def test_unknown_pods_are_listed_but_not_watched() -> None:
    known, unknown = bound("known"), bound("unknown")
    assert candidates.unknown_pods([known], listing(known, unknown)) == {unknown.key}


def test_containers_of_a_pod_are_chosen_in_the_kubelets_order() -> None:
    pod = bound(
        "p",
        container("one", gpu_mem=1024),
        container("two", gpu_mem=256),
        init=(sidecar("side", gpu_mem=256), container("init", gpu_mem=512)),
    )
    served: set[str] = set()
    held: dict[str, dict[str, frozenset[str]]] = {}
    chosen = []
    for _ in pod.device_requests:
        choice = choose([pod], {pod.key: held}, is_served=lambda _, name: name in served)
        assert choice is not None
        chosen.append(choice.device_request.container)
        if choice.device_request.container == "init":
            served.add("init")
        else:
            held[choice.device_request.container] = {names.SLICE: slices(0, len(chosen))}
    assert chosen == ["side", "init", "one", "two"]
    assert choose([pod], {pod.key: held}, is_served=lambda _, name: name in served) is None


def test_an_init_container_without_a_record_counts_as_served_once_a_later_container_holds_ids() -> None:
    pod = bound("p", container("one", gpu_mem=512), container("two", gpu_mem=256), init=(container("i", gpu_mem=512),))
    listed = {pod.key: {"one": {names.SLICE: slices(0, 1, 2)}}}
    assert summary(choose([pod], listed, size=1)) == ("p", "two", False)


@given(st.data())
def test_the_only_waiting_pod_is_always_found(data: st.DataObject) -> None:
    """The pod that is listed without IDs is chosen without doubt, however many pods are unlisted, served or over."""
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
    assert summary(choose(data.draw(st.permutations(watched)), listed)) == (f"p{target}", "main", False)
