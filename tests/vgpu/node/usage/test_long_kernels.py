"""Containers whose kernels keep others waiting: what is found of them, and what is told."""

import json
from collections.abc import Iterable

from tests.vgpu.node.builders import bound, manifest, uuid
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain import names
from vgpu.domain.formats.region import Activity, CardUse
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers import bound_pod
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.usage import kernel_reports
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.long_kernels import KernelLengths, LongKernels

S = 1_000_000_000
START = 1000 * S
GPU = uuid(0)
PODS = tuple(bound(name) for name in ("long", "other"))
LONG, OTHER = ((pod.uid, ContainerName("main"), GPU) for pod in PODS)
OWNERS = {(GPU, 1): LONG, (GPU, 2): OTHER}


def account(launched_ns: int, kernels: int = 0, took_ns: int = 0, ended_ns: int = 0) -> CardUse:
    made = Activity(
        last_launch_at_ns=launched_ns,
        last_kernel_end_at_ns=ended_ns,
        long_kernels=kernels,
        long_kernel_ns=took_ns,
    )
    return CardUse(GPU, 0, None, 0, 0, 0, activity=made)


def busy(*pids: int) -> dict[object, BusySamples]:
    return {GPU: BusySamples(card=((1, 1.0),), processes=tuple((pid, 1, 0.5) for pid in pids))}


def seconds_of_endless(
    seconds: int,
    *,
    launches: bool = False,
    has_turns: bool = False,
    other: bool = True,
    pids: Iterable[int] = (1, 2),
    gap: int = 0,
) -> dict[Use, float]:
    """What is found after a kernel that began with the first look; every look from `gap` on, NVML sees it."""
    lengths = KernelLengths()
    for second in range(seconds + 1):
        now = START + second * S
        long = account(now if launches else START, ended_ns=START if has_turns else 0)
        held = {LONG: long, OTHER: account(now if other else START - 60 * S)}
        lengths.look(held, busy(*pids) if second >= gap else busy(2), OWNERS, now)  # type: ignore[arg-type]
    return dict(lengths.endless_s)


def test_a_kernel_is_endless_after_six_seconds_in_which_its_container_launched_nothing() -> None:
    assert seconds_of_endless(5) == {}
    assert seconds_of_endless(6) == {LONG: 6}
    assert seconds_of_endless(9) == {LONG: 9}


def test_early_launches_in_a_turn_that_does_not_end_hide_no_endless_kernel() -> None:
    """As a rank of a job does whose host is far ahead: launches that a kernel may be waiting for go early."""
    assert seconds_of_endless(5, launches=True, has_turns=True) == {}
    assert seconds_of_endless(9, launches=True, has_turns=True) == {LONG: 9}


def test_a_container_that_launches_or_is_not_on_the_card_or_has_no_neighbour_has_no_endless_kernel() -> None:
    assert seconds_of_endless(20, launches=True) == {}
    assert seconds_of_endless(20, pids=(2,)) == {}
    assert seconds_of_endless(20, other=False) == {}
    assert seconds_of_endless(8, gap=4) == {}


def counted(*looks: tuple[int, int, int], other: bool = True) -> list[dict[Use, LongKernels]]:
    """What is found in looks at a second, with a number of kernels, of as many ms together."""
    lengths, found = KernelLengths(), list[dict[Use, LongKernels]]()
    for second, kernels, ms in looks:
        now = START + second * S
        held = {LONG: account(now, kernels, ms * 1_000_000), OTHER: account(now if other else 0)}
        lengths.look(held, {}, {}, now)
        found.append(dict(lengths.long))
    return found


def test_two_long_kernels_in_a_minute_are_found_and_forgotten_after_one_without_any() -> None:
    looks = ((0, 5, 5000), (1, 6, 5700), (2, 7, 6400), (61, 7, 6400), (62, 7, 6400), (122, 7, 6400), (183, 7, 6400))
    found = counted(*looks)
    both = {LONG: LongKernels(2, 1.4)}
    assert found == [{}, {}, both, both, both, {}, {}]
    assert counted(*looks, other=False) == [{}] * len(looks)


def test_the_pod_is_told_once_for_each_reason() -> None:
    told = kernel_reports.reports({LONG: LongKernels(3, 2.07)}, [LONG], {GPU: 4}, PODS, evicts=())
    assert [(report["podUID"], report["reason"]) for report in told] == [
        (LONG[0], names.LONG_KERNELS),
        (LONG[0], names.ENDLESS_KERNEL),
    ]
    assert f"container main runs kernels of about 0.7 s on card 4 ({GPU})" in told[0]["message"]
    assert "does not end" in told[1]["message"]
    assert not any(report["evict"] for report in told)


def rank(name: str, owner: str = "job-1", phase: str = "Running") -> BoundPod:
    """A member of a placed gang."""
    made = manifest(
        name,
        annotations={names.PLACED_GANG: f"annotation/train/{owner}"},
        owner={"controller": True, "kind": "Job", "name": "train", "uid": owner},
    )
    made["status"] = {**made.get("status", {}), "phase": phase}
    return bound_pod.decode(json.dumps(made).encode())


def endless_text(*pods: BoundPod) -> str:
    use = (pods[0].uid, ContainerName("main"), GPU)
    (report,) = kernel_reports.reports({}, [use], {GPU: 4}, pods, evicts=())
    return str(report["message"])


def test_the_event_of_a_rank_that_spins_names_the_other_ranks_of_its_job_and_what_became_of_them() -> None:
    text = endless_text(rank("rank-0"), rank("rank-2"), rank("rank-1", phase="Failed"), rank("stranger", "job-2"))
    wanted = "waits for another rank of its job, of which here are rank-1 (has ended), rank-2 (runs). "
    assert wanted in text
    assert "stranger" not in text
    assert "of which no other pod of it is here" in endless_text(rank("rank-0"), rank("stranger", "job-2"))
    assert "job" not in endless_text(PODS[0], rank("rank-1"))


def test_the_event_of_a_rank_of_a_large_job_stays_short() -> None:
    pods = [rank(f"rank-{n:02d}-{'x' * 200}") for n in range(32)]
    text = endless_text(*pods)
    assert text.startswith("container main runs a kernel on card 4")
    assert " and 27 more" in text
    assert len(text) <= 1024
