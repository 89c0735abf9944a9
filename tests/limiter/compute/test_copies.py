"""Copies of pageable memory, which the region counts once launches take turns, on the simulated driver."""

from collections.abc import Callable

import pytest

from simgpu.session import ProbeSession
from tests.limiter.conftest import Container

pytestmark = pytest.mark.heavy


SIZE = 4096
EITHER_WAY = ["cuMemcpy", "cuMemcpy_ptds", "cuMemcpyAsync", "cuMemcpyAsync_ptsz"]
ONE_WAY = [
    *("cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"),
    *("cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz"),
]

Make = Callable[..., Container]


@pytest.fixture
def turns(make_container: Make) -> Container:
    """A container whose launches take turns."""
    return make_container("64MiB", 50)


@pytest.fixture
def process(turns: Container) -> ProbeSession:
    """A process that has launched, with memory of the card and of the host: `card`, `pinned`, `pageable`."""
    return started(turns)


def started(container: Container) -> ProbeSession:
    session = container.session()
    assert session("start()") == 0
    assert session("launches.launch(launches.kernel(20))") == 0
    session("globals().update(card=alloc(copies.SIZE)[1], pinned=copies.pinned(), pageable=copies.pageable())")
    return session


def counted(container: Container) -> tuple[int, int]:
    activity = container.region().cards[0].activity
    return activity.pageable_copies, activity.pageable_bytes


@pytest.mark.parametrize("function", [*ONE_WAY, *EITHER_WAY])
def test_copies_of_pageable_memory_are_counted_and_of_pinned_memory_not(
    turns: Container, process: ProbeSession, function: str
) -> None:
    assert process(f"copies.copy({function!r}, pinned, card)") == 0
    assert counted(turns) == (0, 0)
    assert process(f"copies.copy({function!r}, pageable, card)") == 0
    assert process(f"copies.copy({function!r}, pageable, card, size=96)") == 0
    assert counted(turns) == (2, SIZE + 96)


@pytest.mark.parametrize("function", EITHER_WAY)
def test_a_function_for_any_memory_counts_both_directions_and_no_copy_within_the_card_or_the_host(
    turns: Container, process: ProbeSession, function: str
) -> None:
    for host, card in (("card", "card"), ("pageable", "pageable"), ("pageable", "pinned"), ("pinned", "pageable")):
        assert process(f"copies.copy({function!r}, {host}, {card})") == 0
    assert counted(turns) == (0, 0)
    assert process(f"copies.copy({function!r}, pageable, card, to_host=True)") == 0
    assert counted(turns) == (1, SIZE)


def test_memory_in_a_mapping_is_the_card_s(turns: Container, process: ProbeSession) -> None:
    mapped = process(f"vmm.mapped(vmm.create({2 << 20})[1], {2 << 20})")
    assert process(f"vmm.allow({mapped}, {2 << 20})") == 0
    assert process(f"copies.copy('cuMemcpy', pageable, {mapped})") == 0
    assert counted(turns) == (1, SIZE)


def test_a_copy_that_fails_is_not_counted(turns: Container, process: ProbeSession) -> None:
    assert process("copies.copy('cuMemcpyHtoD_v2', pageable, card, size=1 << 40)") != 0
    assert counted(turns) == (0, 0)


def test_the_wait_in_a_copy_is_counted_too(turns: Container, process: ProbeSession) -> None:
    process("[copies.copy(function, pageable, card) for function in copies.EVERY]")
    activity = turns.region().cards[0].activity
    waits = [
        function
        for function in (*ONE_WAY, *EITHER_WAY)
        if "HtoDAsync" not in function and "cuMemcpyAsync" not in function
    ]
    assert (activity.synchronizes, activity.pageable_copies) == (len(waits), 12)


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["GLOBAL", "THREAD_LOCAL", "RELAXED"])
@pytest.mark.parametrize("function", ["cuMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"])
def test_a_captured_copy_is_not_counted_and_the_capture_stays_valid(
    turns: Container, process: ProbeSession, function: str, mode: str
) -> None:
    stream = process("captures.stream()")
    assert process(f"captures.begin({stream}, captures.{mode})") == 0
    assert process(f"copies.copy({function!r}, pageable, card, {stream})") == 0
    assert counted(turns) == (0, 0)
    assert process(f"copies.copy({function!r}, pageable, card, launches.stream())") == 0  # beside the capture
    assert counted(turns) == (1, SIZE)
    assert process(f"captures.end({stream})")[0] == 0


def test_without_turns_nothing_is_counted(make_container: Make) -> None:
    container = make_container("64MiB", None)
    process = started(container)
    assert process("[copies.copy(function, pageable, card) for function in copies.EVERY]") == [0] * 12
    assert counted(container) == (0, 0)
