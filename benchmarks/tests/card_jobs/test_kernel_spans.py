"""The time that cards work on a step, from traces."""

import pytest

from benchmarks.card_jobs.kernel_spans import UnknownBusyError, busiest_us
from benchmarks.card_jobs.kernel_traces import jax_kernels, torch_kernels


def test_the_busiest_card_works_without_waiting_in_collectives() -> None:
    waits = [(0.0, 100.0, False), (100.0, 190.0, True), (200.0, 220.0, False)]
    waited_for = [(0.0, 160.0, False), (160.0, 190.0, True), (200.0, 210.0, False)]
    assert busiest_us([waits, waited_for], steps=2) == (160 + 30 + 10) / 2


def test_kernels_at_the_same_moment_count_once() -> None:
    beside = [(0.0, 100.0, False), (50.0, 120.0, True), (60.0, 70.0, False)]
    assert busiest_us([beside], steps=1) == 120


def test_a_collective_waits_at_its_begin() -> None:
    overlapped = [(0.0, 100.0, False), (20.0, 120.0, True)]
    assert busiest_us([overlapped, [(0.0, 10.0, True)]], steps=1) == 110


@pytest.mark.parametrize("cards", [[], [[]], [[(0.0, 1.0, False)], []], [[(0.0, 1.0, True)], [(0.0, 1.0, False)]]])
def test_traces_that_do_not_tell_are_refused(cards: list[list[tuple[float, float, bool]]]) -> None:
    with pytest.raises(UnknownBusyError):
        busiest_us(cards, steps=1)


def test_a_trace_of_pytorch_has_kernels_without_copies_and_named_ranges() -> None:
    kernel = {"cat": "kernel", "args": {"device": 1}}
    events = [
        {**kernel, "name": "nvjet_tst_128x256", "ts": 5.5, "dur": 2.0},
        {**kernel, "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", "ts": 8, "dur": 4},
        {"cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 1, "dur": 1, "args": {"device": 1}},
        {"cat": "gpu_user_annotation", "name": "nccl:all_reduce", "ts": 1, "dur": 100, "args": {}},
        {"ph": "M", "name": "process_name"},
    ]
    assert torch_kernels({"traceEvents": events}) == {"1": [(5.5, 7.5, False), (8, 12, True)]}


def test_a_trace_of_jax_has_the_kernels_of_streams() -> None:
    def meta(name: str, value: str, pid: int, tid: int = 0) -> dict[str, object]:
        return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": value}}

    def span(name: str, pid: int, tid: int) -> dict[str, object]:
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": 10.0, "dur": 5.0}

    events = [
        meta("process_name", "/device:GPU:0", 1),
        meta("process_name", "/host:CPU", 7),
        meta("thread_name", "Stream #14(Compute,MemcpyD2D)", 1, 14),
        meta("thread_name", "XLA Modules", 1, 2),
        meta("thread_name", "Stream #14(no card)", 7, 14),
        span("gemm_fusion_dot", 1, 14),
        span("ncclDevKernel_AllReduce", 1, 14),
        span("MemcpyD2D", 1, 14),
        span("jit_updated", 1, 2),
        span("a host's", 7, 14),
        {},
    ]
    assert jax_kernels({"traceEvents": events}) == {"/device:GPU:0": [(10.0, 15.0, False), (10.0, 15.0, True)]}
