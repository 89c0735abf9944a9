"""Arrays are charged what the driver takes for them, from their creation until they are destroyed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import Container

OUT_OF_MEMORY, INVALID_VALUE, INVALID_HANDLE = 2, 1, 400
ROW = 65536  # texels of 1 MiB; the driver rounds rows up to a multiple of 8


@pytest.fixture
def process(container: Container) -> ProbeSession:
    started = container.session()
    assert started("start()") == 0
    return started


@pytest.mark.parametrize("kind", ["array", "array3d"])
def test_allocations_reach_the_limit_and_do_not_exceed_it(container: Container, kind: str) -> None:
    lines = container.probe("alloc", "--kind", kind, "40", "24", "2")
    assert [line["result"] for line in lines] == [0, 0, OUT_OF_MEMORY]


def test_mipmaps_count(container: Container) -> None:
    lines = container.probe("alloc", "--kind", "mipmap", "24", "40", "8")
    assert [line["result"] for line in lines] == [0, OUT_OF_MEMORY, 0]


@pytest.mark.parametrize(
    ("call", "mib"),
    [
        (f"arrays.plain({ROW}, 24)", 24),
        ("arrays.cube(256, 256, 10)", 10),
        ("arrays.cube(256, 250, 11, arrays.LAYERED)", 12),
        ("arrays.cube(1024, 1024, 0, levels=3)", 22),
        ("arrays.cube(4, 4, 0)", 2),
        ("arrays.cube(256, 256, 10, arrays.DEFERRED)", 0),
        ("arrays.cube(256, 256, 10, arrays.SPARSE)", 0),
    ],
)
def test_the_charge_equals_the_memory_in_use(container: Container, process: ProbeSession, call: str, mib: int) -> None:
    result, array = process(call)
    assert (result, container.used_mib(), container.world.mib_used()) == (0, mib, mib)
    assert process(f"arrays.destroy({array}, mipmapped={'levels' in call})") == 0
    assert (container.used_mib(), container.world.mib_used()) == (0, 0)


def test_a_refused_small_array_gives_back_nothing(container: Container, process: ProbeSession) -> None:
    """It is in no chunk, so the chunks of the others keep their charge."""
    small = "arrays.cube(256, 256, 0)"
    held = [process(small)[1]]
    assert process(f"arrays.plain({ROW}, 56)")[0] == 0
    while (made := process(small))[0] == 0:
        held.append(made[1])
    assert [process(small)[0] for _ in range(5)] == [OUT_OF_MEMORY] * 5
    assert (container.used_mib(), container.world.mib_used()) == (64, 64)
    for array in held[1:]:
        process(f"arrays.destroy({array})")
    assert container.used_mib() >= container.world.mib_used() == 58, "one array still needs its chunk"
    process(f"arrays.destroy({held[0]})")
    assert (container.used_mib(), container.world.mib_used()) == (56, 56)


def test_small_arrays_share_chunks(container: Container, process: ProbeSession) -> None:
    held = [process("arrays.cube(256, 256, 0)")[1] for _ in range(7)]
    assert container.used_mib() == 8
    for array in held:
        process(f"arrays.destroy({array})")
    assert container.used_mib() == 0


def test_after_a_refusal_nothing_is_charged_and_allocation_continues(
    container: Container, process: ProbeSession
) -> None:
    _, first = process(f"arrays.plain({ROW}, 56)")
    for refused in (f"arrays.plain({ROW}, 16)", "arrays.cube(1024, 1024, 0, levels=3)"):
        assert process(refused) == [OUT_OF_MEMORY, 0]
    assert (container.used_mib(), container.world.mib_used()) == (56, 56)
    assert process(f"arrays.plain({ROW}, 8)")[0] == 0
    assert process("arrays.cube(4, 4, 0)") == [OUT_OF_MEMORY, 0]
    process(f"arrays.destroy({first})")
    assert process(f"arrays.plain({ROW}, 56)")[0] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("function", ["cuArrayCreate_v2", "cuArrayDestroy"])
def test_what_the_driver_refuses_changes_nothing(container: Container, process: ProbeSession, function: str) -> None:
    _, array = process(f"arrays.plain({ROW}, 16)")
    state_directory.inject_faults(container.world.state, (function, 999))
    call = f"arrays.destroy({array})" if function == "cuArrayDestroy" else f"arrays.plain({ROW}, 8)[0]"
    assert process(call) == 999
    assert container.used_mib() == 16
    state_directory.inject_faults(container.world.state)
    assert process(f"arrays.destroy({array})") == 0
    assert container.used_mib() == 0


def test_invalid_arguments_are_passed_to_the_driver(container: Container, process: ProbeSession) -> None:
    assert process("arrays.plain(0, 4)") == [INVALID_VALUE, 0]
    assert process("arrays.destroy(64)") == INVALID_HANDLE
    assert process("int(cuda.cuArrayCreate_v2(None, None))") == INVALID_VALUE
    assert container.used_mib() == 0


def test_arrays_end_with_their_context(
    make_world: Callable[..., World], make_container: Callable[..., Container]
) -> None:
    world = make_world(tuple(replace(card, context_mib=20) for card in state_directory.make_cards(1)))
    container = replace(make_container("64MiB"), world=world)
    process = container.session()
    process("start()")
    assert process(f"arrays.plain({ROW}, 24)")[0] == 0
    assert container.used_mib() == 44
    process("cuda.cuDevicePrimaryCtxReset_v2(0)")
    assert container.used_mib() == 0


@pytest.mark.heavy
def test_many_allocations_leak_nothing(make_container: Callable[..., Container]) -> None:
    container = make_container("128MiB")
    process = container.session()
    process("start()")
    process(
        "[arrays.destroy(arrays.cube(*size)[1], mipmapped=len(size) > 4) for size in"
        " ((256, 256, 0), (300, 300, 7), (1024, 1024, 0, 0, 5), (4, 4, 0)) for _ in range(50)]"
    )
    assert (container.used_mib(), container.world.mib_used()) == (0, 0)
