"""The cards that a program sees, and their properties."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simgpu import state_directory, usage
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY = 2
CAPACITY_MIB = 81920


@pytest.mark.parametrize(("program", "options"), [("gpuprobe", ()), ("gpuprobe", ("--proc",)), ("gpuprobe-linked", ())])
def test_every_program_shows_the_cards_of_the_file(
    make_world: Callable[..., World], program: str, options: tuple[str, ...]
) -> None:
    cards = tuple(replace(card, memory_mib=1000, reserved_mib=100) for card in state_directory.make_cards(2))
    shown = make_world(cards).probe(*options, "info", program=program)
    assert shown == [
        {
            "cuda": [{"uuid": card.uuid, "total": 900 * MIB, "free": 900 * MIB} for card in cards],
            "nvml": [{"uuid": card.uuid, "total": 1000 * MIB, "free": 900 * MIB, "used": 100 * MIB} for card in cards],
        }
    ]


def test_a_refused_allocation_leaves_room_for_a_smaller_one(world: World) -> None:
    attempts = world.probe("alloc", "4096", "80000", "70000")
    assert [attempt["result"] for attempt in attempts] == [0, OUT_OF_MEMORY, 0]


@pytest.mark.parametrize("kind", ["alloc", "pitch", "vmm", "async"])
def test_each_kind_fills_the_card_and_no_more(world: World, kind: str) -> None:
    assert world.probe("fill", "--kind", kind, "512") == [{"mib": CAPACITY_MIB, "result": OUT_OF_MEMORY}]


def test_managed_memory_takes_nothing_of_the_card(world: World) -> None:
    session = world.session()
    session("start()")
    result, pointer = session(f"alloc({100 * CAPACITY_MIB * MIB}, 'cuMemAllocManaged')")
    assert result == 0
    assert usage.bytes_by_card(world.state) == {}
    assert session(f"free({pointer})") == 0


def test_a_context_takes_what_the_card_says(make_world: Callable[..., World]) -> None:
    world = make_world(tuple(replace(card, context_mib=500) for card in state_directory.make_cards(1)))
    assert world.probe("info")[0]["cuda"][0]["free"] == (CAPACITY_MIB - 500) * MIB
    assert world.mib_used() == 0


def test_only_listed_cards_exist_in_a_container(world: World) -> None:
    state_directory.write_visible(world.state / "visible", [world.cards[1].uuid])
    shown = world.probe("info")[0]
    assert [card["uuid"] for card in shown["cuda"]] == [world.cards[1].uuid]
    assert [card["uuid"] for card in shown["nvml"]] == [world.cards[1].uuid]


FIRST, SECOND = (card.uuid for card in state_directory.make_cards(2))


@pytest.mark.parametrize(
    ("listed", "seen"),
    [
        ("1,0", [SECOND, FIRST]),
        ("1", [SECOND]),
        (SECOND, [SECOND]),
        (SECOND[:12], [SECOND]),
        ("0,7,1", [FIRST]),
        ("0 ", [FIRST]),
        ("7,0", 100),
        ("", 100),
        ("-1", 100),
        ("GPU-", 100),
        ("0,0", 101),
    ],
)
def test_cuda_visible_devices_is_read_as_the_real_driver_does(world: World, listed: str, seen: list[str] | int) -> None:
    session = world.session(CUDA_VISIBLE_DEVICES=listed)
    result = session("start()")
    assert (session("uuids()") if result == 0 else result) == seen


def test_without_cards_there_is_no_driver(world: World) -> None:
    (world.state / "cards").unlink()
    session = world.session()
    assert session("start()") == 100
    assert session("nvml('nvmlInit')") == 9


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.one_of(st.binary(max_size=300), st.text(alphabet='uid=GPU-01 "\n,memoryMiBxl', max_size=200)))
def test_no_cards_file_crashes_the_reader(world: World, text: bytes | str) -> None:
    line = state_directory.make_cards(1)[0].line().encode()
    (world.state / "cards").write_bytes(line + b" " + (text.encode() if isinstance(text, str) else text))
    world.probe("info")


@pytest.mark.parametrize(
    "wrong",
    ["uuid=GPU-12", "memoryMiB=-1", "memoryMiB=x", "memoryMiB=1", "healthy=2", "index=", 'model="no end', "colour=red"],
)
def test_a_malformed_card_is_refused_not_guessed(world: World, wrong: str) -> None:
    with (world.state / "cards").open("a") as cards:
        cards.write(f"{state_directory.make_cards(1)[0].line()} reservedMiB=5 {wrong}\n")
    assert world.probe("info") == [{"error": "cuInit", "result": 999}]
