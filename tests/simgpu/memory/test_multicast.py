"""Multicast objects, external memory and green contexts: the memory of a card that they keep."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
INVALID_VALUE, NOT_SUPPORTED, INVALID_RESOURCE_TYPE = 1, 801, 914
INVALID_RESOURCE_CONFIGURATION = 915


def test_a_multicast_object_keeps_what_is_bound_to_it(world: World, session: ProbeSession) -> None:
    result, team = session(f"multicast.create({64 * MIB}, devices=2)")
    assert (result, world.mib_used()) == (0, 0)
    memories = [session(f"vmm.create({32 * MIB}, device={device})")[1] for device in (0, 1)]
    assert session(f"multicast.bind({team}, 0, {memories[0]}, {32 * MIB})") == INVALID_VALUE
    assert session(f"[multicast.add({team}, device) for device in (0, 1, 1)]") == [0, 0, INVALID_VALUE]
    assert [session(f"multicast.bind({team}, 0, {memory}, {32 * MIB})") for memory in memories] == [0, 0]
    assert [session(f"vmm.release({memory})") for memory in memories] == [0, 0]
    assert world.mib_used() == 64
    assert session(f"multicast.unbind({team}, 1, 0, {32 * MIB})") == 0
    assert world.mib_used() == 32
    assert session(f"vmm.release({team})") == 0
    assert world.mib_used() == 0


@pytest.mark.parametrize(
    ("offset", "size", "result"),
    [(0, 32 * MIB, 0), (48 * MIB, 32 * MIB, 1), (0, 34 * MIB, 1), (MIB, 2 * MIB, 1), (32 * MIB, 32 * MIB, 0)],
)
def test_a_binding_must_fit_the_object_and_the_memory(
    session: ProbeSession, offset: int, size: int, result: int
) -> None:
    _, team = session(f"multicast.create({64 * MIB})")
    session(f"multicast.add({team}, 0)")
    _, memory = session(f"vmm.create({32 * MIB})")
    assert session(f"multicast.bind({team}, {offset}, {memory}, {size})") == result


def test_memory_is_bound_by_its_address_too(world: World, session: ProbeSession) -> None:
    _, team = session(f"multicast.create({64 * MIB})")
    session(f"multicast.add({team}, 0)")
    _, memory = session(f"vmm.create({32 * MIB})")
    address = session(f"vmm.mapped({memory}, {32 * MIB})")
    assert session(f"multicast.bind_address({team}, 0, {address}, {32 * MIB})") == 0
    assert session(f"multicast.bind_address({team}, 0, {address}, {32 * MIB})") == INVALID_VALUE
    assert session(f"[vmm.unmap({address}, {32 * MIB}), vmm.release({memory})]") == [0, 0]
    assert world.mib_used() == 32
    session(f"vmm.release({team})")
    assert world.mib_used() == 0


def test_granularities(session: ProbeSession) -> None:
    assert session("[multicast.granularity(option) // 2**20 for option in (0, 1)]") == [2, 512]


def test_external_memory_is_counted_with_its_exporter_until_that_ends(world: World, session: ProbeSession) -> None:
    importer = world.session()
    importer("[start(), nvml('nvmlInit')]")
    path = str(world.state / "socket")
    importer(f"ipc.listen('{path}')")
    _, handle = session(f"vmm.create({64 * MIB}, handle_types=vmm.POSIX_FD)")
    session(f"ipc.send('{path}', vmm.export({handle})[1])")
    descriptor = importer(f"ipc.receive('{path}')")
    result, memory = importer(f"external.take({descriptor}, {64 * MIB})")
    assert result == 0
    assert importer("processes()") == [[session.process.pid, 64 * MIB]]
    result, pointer = importer(f"external.buffer({memory}, {2 * MIB}, {62 * MIB})")
    assert (result, importer(f"fill({pointer}, {62 * MIB})")) == (0, 0)
    assert importer(f"external.buffer({memory}, {2 * MIB}, {64 * MIB})") == [INVALID_VALUE, 0]
    session.kill()
    assert importer("processes()") == [[importer.process.pid, 64 * MIB]]
    assert importer(f"external.destroy({memory})") == 0
    assert world.mib_used() == 64
    assert importer(f"free({pointer})") == 0
    assert world.mib_used() == 0


def test_a_buffer_of_own_memory_is_counted_with_no_process(world: World, session: ProbeSession) -> None:
    session("nvml('nvmlInit')")
    _, handle = session(f"vmm.create({64 * MIB}, handle_types=vmm.POSIX_FD)")
    _, memory = session(f"external.take(vmm.export({handle})[1], {64 * MIB})")
    _, pointer = session(f"external.buffer({memory}, 0, {64 * MIB})")
    assert session(f"vmm.release({handle})") == 0
    assert session("processes()") == [[session.process.pid, 64 * MIB]]
    assert session(f"external.destroy({memory})") == 0
    assert (world.mib_used(), session("processes()")) == (64, [])
    assert session(f"free({pointer})") == 0
    assert world.mib_used() == 0


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("external.take(0, 4096)", INVALID_VALUE),
        (
            f"external.take(vmm.export(vmm.create({2 * MIB}, handle_types=vmm.POSIX_FD)[1])[1], {4 * MIB})",
            INVALID_VALUE,
        ),
        ("external.take(0, 4096, kind=9)", NOT_SUPPORTED),
    ],
)
def test_a_descriptor_of_other_memory_is_refused(session: ProbeSession, call: str, result: int) -> None:
    assert session(call) == [result, 0]


def test_multiprocessors_are_split_in_parts(session: ProbeSession) -> None:
    assert session("green.of_device()") == [0, 132]
    assert session("green.of_device(kind=7)") == [INVALID_RESOURCE_TYPE, 0]
    assert session("green.split(2, 30)") == [0, [32, 32], 68]
    assert session("green.split(9, 60)") == [0, [64, 64], 4]
    assert session("green.possible(10)") == 8
    assert session("green.split(1, 200)[0]") == INVALID_RESOURCE_CONFIGURATION


def test_a_green_context_lives_in_the_primary_ones_memory(make_world: Callable[..., World]) -> None:
    world = make_world(tuple(replace(card, context_mib=500) for card in state_directory.make_cards(1)))
    session = world.session()
    assert session("cuda.cuInit(0)") == 0
    result, first, _ = session("green.create(16)")
    assert (result, world.mib_used()) == (0, 500)
    assert session("green.of_current()") == 16
    second = session("green.create(30)")[1]
    assert (session("green.of_current()"), world.mib_used()) == (32, 500)
    assert session(f"alloc({10 * MIB})")[0] == 0
    assert session(f"green.destroy({second})") == 0
    assert world.mib_used() == 510
    assert session(f"green.destroy({first})") == 0
    assert world.mib_used() == 0


def test_the_end_of_a_green_context_leaves_the_process_in_nvml_s_list(make_world: Callable[..., World]) -> None:
    """The primary context lives on, by a reference of the program's."""
    session = make_world(tuple(replace(card, context_mib=500) for card in state_directory.make_cards(1))).session()
    assert session("start()") == 0
    session("nvml('nvmlInit')")
    assert session("green.destroy(green.create(16)[1])") == 0
    assert session("processes()") == [[session.process.pid, 500 * MIB]]


def test_no_table_of_nvidias_own_is_there(session: ProbeSession) -> None:
    assert session("made('cuGetExportTable', bytes(16))") == [500, 0]
    assert session("cuda.cuGetExportTable(None, None)") == INVALID_VALUE
