"""Physical memory is charged while a mapping, array, descriptor or import refers to it, in any order of their ends."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2
SIZE = 20 * MIB


@pytest.fixture
def process(container: Container) -> ProbeSession:
    started = container.session()
    assert started("start()") == 0
    return started


def create(process: ProbeSession, *, usage: int = 0) -> int:
    result, handle = process(f"vmm.create({SIZE}, handle_types=vmm.POSIX_FD, usage={usage})")
    assert result == 0
    return int(handle)


def test_an_import_in_the_exporter_keeps_the_memory(container: Container, process: ProbeSession) -> None:
    handle = create(process)
    _, descriptor = process(f"vmm.export({handle})")
    result, imported = process(f"vmm.take({descriptor})")
    assert (result, container.used_mib()) == (0, 20)
    assert process(f"os.close({descriptor})") is None
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 20
    assert process(f"alloc({45 * MIB})")[0] == OUT_OF_MEMORY
    assert process(f"vmm.release({imported})") == 0
    assert container.used_mib() == 0


def test_an_open_descriptor_keeps_the_memory(container: Container, process: ProbeSession) -> None:
    handle = create(process)
    _, descriptor = process(f"vmm.export({handle})")
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 20
    assert process(f"alloc({45 * MIB})")[0] == OUT_OF_MEMORY
    process(f"os.close({descriptor})")
    assert process(f"alloc({45 * MIB})")[0] == 0
    assert container.used_mib() == 46


def test_a_closed_descriptor_keeps_nothing(container: Container, process: ProbeSession) -> None:
    handle = create(process)
    for _ in range(3):
        process(f"os.close(vmm.export({handle})[1])")
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 0


@pytest.mark.parametrize("end", ["arrays.destroy({array})", "arrays.map_memory({array}, 0)"])
def test_an_array_keeps_the_memory_mapped_to_it(container: Container, process: ProbeSession, end: str) -> None:
    handle = create(process, usage=1)
    _, array = process("arrays.cube(256, 256, 20, arrays.DEFERRED)")
    assert process(f"arrays.map_memory({array}, {handle})") == 0
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 20
    assert process(end.format(array=array)) == 0
    assert container.used_mib() == 0


def test_each_tile_of_a_sparse_array_keeps_its_memory(container: Container, process: ProbeSession) -> None:
    _, array = process("arrays.cube(1024, 1024, 0, arrays.SPARSE)")
    handles = [create(process, usage=1) for _ in range(3)]
    for tile, handle in enumerate(handles):
        assert process(f"arrays.map_memory({array}, {handle}, tile={tile})") == 0
        process(f"vmm.release({handle})")
    assert container.used_mib() == 60
    assert process(f"arrays.map_memory({array}, 0, tile=1)") == 0
    assert container.used_mib() == 40
    assert process(f"arrays.destroy({array})") == 0
    assert container.used_mib() == 0


def test_external_memory_and_its_buffers_keep_the_memory(container: Container, process: ProbeSession) -> None:
    handle = create(process)
    _, descriptor = process(f"vmm.export({handle})")
    result, memory = process(f"external.take({descriptor}, {SIZE})")
    assert (result, container.used_mib()) == (0, 20)
    assert process(f"vmm.release({handle})") == 0
    result, pointer = process(f"external.buffer({memory}, 0, {SIZE})")
    assert (result, container.used_mib()) == (0, 20)
    assert process(f"external.destroy({memory})") == 0
    assert container.used_mib() == 20
    assert process(f"alloc({45 * MIB})")[0] == OUT_OF_MEMORY
    assert process(f"free({pointer})") == 0
    assert container.used_mib() == 0


def test_a_failed_import_of_external_memory_changes_nothing(container: Container, process: ProbeSession) -> None:
    handle = create(process)
    _, descriptor = process(f"vmm.export({handle})")
    assert process(f"external.take({descriptor}, {SIZE}, 99)")[0] != 0
    assert process(f"os.close({descriptor}) or external.take({descriptor}, {SIZE})")[0] != 0
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 0


@pytest.mark.parametrize("end", ["multicast.unbind({object}, 0, 0, 20 << 20)", "vmm.release({object})"])
def test_a_multicast_object_keeps_the_memory_bound_to_it(container: Container, process: ProbeSession, end: str) -> None:
    result, made = process(f"multicast.create({SIZE})")
    assert (result, process(f"multicast.add({made}, 0)"), container.used_mib()) == (0, 0, 0)
    handle = create(process)
    assert process(f"multicast.bind({made}, 0, {handle}, {SIZE})") == 0
    assert process(f"vmm.release({handle})") == 0
    assert container.used_mib() == 20
    assert process(end.format(object=made)) == 0
    assert container.used_mib() == 0


@pytest.fixture
def pair(
    make_world: Callable[..., World], make_container: Callable[..., Container]
) -> tuple[Container, ProbeSession, ProbeSession]:
    """Two processes of a container of 256 MiB, with contexts of 20 MiB."""
    world = make_world(tuple(replace(card, context_mib=20) for card in state_directory.make_cards(1)))
    container = replace(make_container("256MiB"), world=world)
    exporter, importer = container.session(), container.session()
    for session in (exporter, importer):
        assert session("start()") == 0
    return container, exporter, importer


def test_memory_freed_by_its_exporter_is_charged_to_the_importer(
    pair: tuple[Container, ProbeSession, ProbeSession],
) -> None:
    container, exporter, importer = pair
    _, pointer = exporter(f"alloc({64 * MIB})")
    _, handle = exporter(f"ipc.export({pointer})")
    _, opened = importer(f"ipc.take('{handle}')")
    assert container.used_mib() == 104
    assert exporter(f"free({pointer})") == 0
    assert container.used_mib() == 104
    assert importer(f"alloc({153 * MIB})")[0] == OUT_OF_MEMORY
    assert importer(f"ipc.close({opened})") == 0
    assert importer(f"alloc({200 * MIB})")[0] == 0


def test_memory_of_a_killed_exporter_is_charged_to_the_importer(
    pair: tuple[Container, ProbeSession, ProbeSession],
) -> None:
    container, exporter, importer = pair
    _, pointer = exporter(f"alloc({64 * MIB})")
    _, handle = exporter(f"ipc.export({pointer})")
    importer(f"ipc.take('{handle}')")
    exporter.kill()
    assert importer(f"alloc({173 * MIB})")[0] == OUT_OF_MEMORY
    assert container.used_mib() == 84
    assert importer(f"alloc({172 * MIB})")[0] == 0


def test_memory_of_a_descriptor_is_charged_to_the_importer_after_its_exporter(
    pair: tuple[Container, ProbeSession, ProbeSession],
) -> None:
    container, exporter, importer = pair
    handle = create(exporter)
    _, descriptor = exporter(f"vmm.export({handle})")
    path = str(container.world.state / "socket")
    importer(f"ipc.listen('{path}')")
    exporter(f"ipc.send('{path}', {descriptor}) or os.close({descriptor})")
    received = importer(f"ipc.receive('{path}')")
    _, imported = importer(f"vmm.take({received})")
    importer(f"os.close({received})")
    assert container.used_mib() == 60
    assert exporter(f"vmm.release({handle})") == 0
    assert container.used_mib() == 60
    assert importer(f"vmm.release({imported})") == 0
    assert importer(f"alloc({216 * MIB})")[0] == 0
