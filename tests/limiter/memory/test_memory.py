"""One process under a limit: every function that allocates, frees or reports memory."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory, usage
from simgpu.world import World
from tests.limiter.conftest import MIB, Container
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

OUT_OF_MEMORY = 2
INVALID_VALUE = 1
KINDS = ("alloc", "pitch", "managed", "async")
PROGRAMS = (("gpuprobe", ()), ("gpuprobe", ("--proc",)), ("gpuprobe-linked", ()))

Make = Callable[..., Container]


def results(lines: list[dict[str, int]]) -> list[int]:
    return [line["result"] for line in lines]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("program", "options"), PROGRAMS)
def test_allocations_reach_the_limit_and_do_not_exceed_it(
    container: Container, program: str, options: tuple[str, ...], kind: str
) -> None:
    lines = container.probe("alloc", *options, "--kind", kind, "40", "24", "2", program=program)
    assert results(lines) == [0, 0, OUT_OF_MEMORY]


@pytest.mark.parametrize(("program", "options"), PROGRAMS)
def test_cuda_and_nvml_show_the_limit(container: Container, program: str, options: tuple[str, ...]) -> None:
    shown = container.probe("info", *options, program=program)[0]
    assert [(card["total"], card["free"]) for card in shown["cuda"]] == [(64 * MIB, 64 * MIB)] * 2
    assert [(card["total"], card["free"], card["used"]) for card in shown["nvml"]] == [(64 * MIB, 64 * MIB, 0)] * 2


def test_free_memory_follows_allocations(make_world: Callable[..., World], make_container: Make) -> None:
    make_world(tuple(replace(card, reserved_mib=500) for card in state_directory.make_cards(2)))
    container = make_container()
    process = container.session()
    process("start()")
    _, pointer = process(f"alloc({10 * MIB})")
    assert process("info()") == [0, 54 * MIB, 64 * MIB]
    process("nvml('nvmlInit')")
    assert process("memory()") == {"total": 64 * MIB, "reserved": 0, "free": 54 * MIB, "used": 10 * MIB}
    assert process(f"free({pointer})") == 0
    assert process("info()") == [0, 64 * MIB, 64 * MIB]


def test_free_memory_is_at_most_the_card_s(make_container: Make, world: World) -> None:
    hog = world.hold(81920 - 16)
    process = make_container("1GiB").session()
    process("start()")
    assert process("info()") == [0, 16 * MIB, 1024 * MIB]
    hog.kill()


def test_a_program_continues_after_a_refusal(container: Container) -> None:
    process = container.session()
    process("start()")
    _, pointer = process(f"alloc({60 * MIB})")
    assert process(f"alloc({6 * MIB})") == [OUT_OF_MEMORY, 0]
    assert process(f"alloc({4 * MIB})")[0] == 0
    assert process(f"free({pointer})") == 0
    assert process(f"alloc({60 * MIB})")[0] == 0
    assert container.region().cards[0].refusals == 1
    assert container.region().cards[0].peak_bytes == 64 * MIB


@pytest.mark.heavy
def test_every_free_function_releases_every_allocation(container: Container) -> None:
    process = container.session()
    process("start()")
    for function in ("cuMemAlloc_v2", "cuMemAllocManaged"):
        for free in ("cuMemFree_v2", "cuMemFreeAsync"):
            _, pointer = process(f"alloc({10 * MIB}, '{function}')")
            assert container.used_mib() == 10
            assert process(f"free({pointer}, '{free}')") == 0
            assert container.used_mib() == 0


@pytest.mark.heavy
def test_the_charge_equals_the_driver_s_chunks(make_container: Make, world: World) -> None:
    """Small allocations share chunks; a chunk is charged until its last piece is freed."""
    process = make_container("1GiB").session()
    process("start()")
    chance, held = random.Random(3), list[int]()
    for _ in range(300):
        if held and chance.random() < 0.4:
            process(f"free({held.pop(chance.randrange(len(held)))})")
        else:
            size = chance.choice([1, 4096, 500_000, MIB, MIB + 1, 3 * MIB])
            held.append(process(f"alloc({size})")[1])
    taken = usage.bytes_by_card(world.state)[world.cards[0].uuid]
    assert process("info()") == [0, 1024 * MIB - taken, 1024 * MIB]
    assert taken > 0


@pytest.mark.heavy
def test_a_refused_small_allocation_leaves_no_charge(container: Container, world: World) -> None:
    process = container.session()
    process("start()")
    process(f"alloc({64 * MIB})")
    assert process("alloc(4096)") == [OUT_OF_MEMORY, 0]
    assert usage.bytes_by_card(world.state) == {world.cards[0].uuid: 64 * MIB}


@pytest.mark.heavy
def test_an_allocation_that_the_driver_refuses_is_not_charged(container: Container, world: World) -> None:
    process = container.session()
    process("start()")
    state_directory.inject_faults(world.state, ("cuMemAlloc_v2", 999), ("cuMemFree_v2", 999))
    assert process(f"alloc({10 * MIB})")[0] == 999
    assert container.used_mib() == 0
    state_directory.inject_faults(world.state, ("cuMemFree_v2", 999))
    _, pointer = process(f"alloc({10 * MIB})")
    assert process(f"free({pointer})") == 999
    assert container.used_mib() == 10
    state_directory.inject_faults(world.state)
    assert process(f"free({pointer})") == 0
    assert container.used_mib() == 0


def test_invalid_arguments_are_passed_to_the_driver(container: Container) -> None:
    process = container.session()
    assert process("alloc(4096)")[0] not in {0, OUT_OF_MEMORY}
    process("start()")
    assert process("alloc(0)")[0] == INVALID_VALUE
    assert process("int(cuda.cuMemAlloc_v2(None, ctypes.c_size_t(4096)))") == INVALID_VALUE
    assert process(f"alloc({2**64 - 1})")[0] == OUT_OF_MEMORY
    assert process("free(0x123456)") == INVALID_VALUE
    assert container.used_mib() == 0


def test_each_card_has_its_own_limit_in_any_order_of_cards(make_container: Make, world: World) -> None:
    first, second = (card.uuid for card in world.cards)
    container = make_container(f"{first}=32MiB,{second}=8MiB")
    assert [card["total"] // MIB for card in container.probe("info")[0]["cuda"]] == [32, 8]
    swapped = container.probe("info", CUDA_VISIBLE_DEVICES="1,0")[0]
    assert [card["total"] // MIB for card in swapped["cuda"]] == [8, 32]
    assert [card["total"] // MIB for card in swapped["nvml"]] == [32, 8]
    assert results(container.probe("alloc", "8", "2", CUDA_VISIBLE_DEVICES=second)) == [0, OUT_OF_MEMORY]
    assert results(container.probe("alloc", "--device", "1", "8", "2")) == [0, OUT_OF_MEMORY]


def test_a_card_without_limits_is_denied(make_container: Make, world: World) -> None:
    container = make_container(f"{world.cards[1].uuid}=8MiB")
    assert results(container.probe("alloc", "2")) == [OUT_OF_MEMORY]
    assert container.probe("alloc", "--kind", "context", "2")[0]["error"] == "cuDevicePrimaryCtxRetain"


@pytest.mark.heavy
def test_without_a_memory_limit_allocations_are_counted_only(make_container: Make) -> None:
    container = make_container(None, cores=30)
    process = container.session()
    process("start()")
    assert process("info()") == [0, 81920 * MIB, 81920 * MIB]
    assert process(f"alloc({1024 * MIB})")[0] == 0
    assert container.used_mib() == 1024


def test_without_any_limit_nothing_is_changed(world: World, shim: object) -> None:
    shown = world.probe("info", LD_PRELOAD=str(shim))[0]
    assert shown == world.probe("info")[0]
    assert results(world.probe("alloc", "81920", "2", LD_PRELOAD=str(shim))) == [0, OUT_OF_MEMORY]


@pytest.mark.heavy
def test_the_environment_alone_is_enough(world: World, shim: object) -> None:
    limited = {"LD_PRELOAD": str(shim), "VGPU_MEMORY_LIMIT": "64MiB"}
    assert results(world.probe("alloc", "64", "2", **limited)) == [0, OUT_OF_MEMORY]


@pytest.mark.parametrize(
    "broken",
    [{"VGPU_MEMORY_LIMIT": "8 apples"}, {"VGPU_LIMITS_FILE": "/nowhere"}, {"VGPU_REGION_FILE": "/dev/null"}],
)
def test_unreadable_limits_deny_allocations(container: Container, broken: dict[str, str]) -> None:
    env = {**container.env, **broken}
    if "VGPU_MEMORY_LIMIT" in broken:
        del env["VGPU_LIMITS_FILE"]
    assert results(container.world.probe("alloc", "2", **env)) == [OUT_OF_MEMORY]


def test_limits_change_under_a_running_process(container: Container) -> None:
    process = container.session()
    process("start()")
    assert process(f"alloc({60 * MIB})")[0] == 0
    container.limit(Limits((CardLimit(ANY_GPU, 128 * MIB),)))
    assert process("info()") == [0, 68 * MIB, 128 * MIB]
    assert process(f"alloc({60 * MIB})")[0] == 0
    container.limit(Limits((CardLimit(ANY_GPU, 32 * MIB),)))
    assert process(f"alloc({2 * MIB})")[0] == OUT_OF_MEMORY
    assert process("info()") == [0, 0, 32 * MIB]


def test_a_damaged_limits_file_leaves_the_last_valid_limits(container: Container) -> None:
    process = container.session()
    process("start()")
    process(f"alloc({2 * MIB})")
    path = container.folder / "limits"
    with path.open("r+b") as file:
        file.write(b"\xff" * limits.SIZE)
    assert process("info()") == [0, 62 * MIB, 64 * MIB]
    assert results(container.probe("alloc", "2")) == [OUT_OF_MEMORY]


@pytest.mark.heavy
@pytest.mark.parametrize("end", ["cuDevicePrimaryCtxReset_v2(0)", "cuDevicePrimaryCtxRelease_v2(0)"])
def test_memory_of_a_context_ends_with_it(container: Container, end: str) -> None:
    process = container.session()
    process("start()")
    process(f"[alloc({20 * MIB}), alloc(4096), alloc(8192)]")
    assert container.used_mib() == 22
    assert process(f"cuda.{end}") == 0
    assert container.used_mib() == 0
    process("start()")
    assert process(f"alloc({64 * MIB})")[0] == 0


@pytest.mark.heavy
def test_destroying_a_context_keeps_the_charges_of_others(container: Container) -> None:
    process = container.session()
    process("start()")
    process(f"alloc({20 * MIB})")
    made = "cuda.cuCtxCreate_v2(ctypes.byref(made), 0, 0)"
    assert process(f"globals().update(made=ctypes.c_void_p()) or {made}") == 0
    process(f"alloc({10 * MIB})")
    assert container.used_mib() == 30
    assert process("cuda.cuCtxDestroy_v2(made)") == 0
    assert container.used_mib() == 20
