"""Shared memory: how long it lives, and the process that NVML counts it with (as on an H200, driver 580)."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT = 2, 1, 101, 201


@dataclass(frozen=True, slots=True)
class Pair:
    """A process that exports and one that imports."""

    world: World
    exporter: ProbeSession
    importer: ProbeSession

    def shown(self) -> dict[int, int]:
        """MiB of each process in NVML's list, without processes of 0 MiB."""
        self.importer("nvml('nvmlInit')")
        return {pid: size // MIB for pid, size in self.importer("processes()")}

    def used(self) -> int:
        return sum(usage.bytes_by_card(self.world.state).values()) // MIB

    def send(self, descriptor: int) -> int:
        """The importer's copy of a descriptor of the exporter."""
        path = str(self.world.state / "socket")
        if not (self.world.state / "socket").exists():
            self.importer(f"ipc.listen('{path}')")
        self.exporter(f"ipc.send('{path}', {descriptor})")
        return int(self.importer(f"ipc.receive('{path}')"))


@pytest.fixture
def pair(world: World) -> Pair:
    both = world.session(), world.session()
    for session in both:
        assert session("start()") == 0
    return Pair(world, *both)


def test_imported_memory_is_counted_once_with_its_exporter(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    result, handle = pair.exporter(f"ipc.export({pointer})")
    assert (result, pair.used()) == (0, 64)
    result, opened = pair.importer(f"ipc.take('{handle}')")
    assert result == 0
    assert pair.importer(f"fill({opened}, {64 * MIB})") == 0
    assert pair.used() == 64
    assert pair.shown() == {pair.exporter.process.pid: 64}
    assert pair.importer("info()[1:]") == [(81920 - 64) * MIB, 81920 * MIB]


def test_what_the_exporter_freed_is_the_importers_until_it_closes(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    _, handle = pair.exporter(f"ipc.export({pointer})")
    _, opened = pair.importer(f"ipc.take('{handle}')")
    assert pair.exporter(f"free({pointer})") == 0
    assert (pair.used(), pair.shown()) == (64, {pair.importer.process.pid: 64})
    assert pair.importer(f"ipc.close({opened})") == 0
    assert (pair.used(), pair.shown()) == (0, {})
    assert pair.importer(f"ipc.take('{handle}')") == [INVALID_VALUE, 0]


def test_what_a_killed_exporter_shared_is_the_importers(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    pair.exporter(f"alloc({10 * MIB})")
    _, handle = pair.exporter(f"ipc.export({pointer})")
    pair.importer(f"ipc.take('{handle}')")
    pair.exporter.kill()
    assert (pair.used(), pair.shown()) == (64, {pair.importer.process.pid: 64})
    assert pair.importer(f"alloc({(81920 - 63) * MIB})")[0] == OUT_OF_MEMORY
    assert pair.importer(f"alloc({(81920 - 64) * MIB})")[0] == 0
    pair.importer.kill()
    assert pair.used() == 0


def test_a_third_process_opens_what_the_exporter_no_longer_has(pair: Pair) -> None:
    third = pair.world.session()
    third("start()")
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    _, handle = pair.exporter(f"ipc.export({pointer})")
    pair.importer(f"ipc.take('{handle}')")
    pair.exporter.kill()
    assert third(f"ipc.take('{handle}')")[0] == 0
    pair.importer.kill()
    third("nvml('nvmlInit')")
    assert third("processes()") == [[third.process.pid, 64 * MIB]]


def test_a_slot_taken_anew_holds_nothing_of_the_dead(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    _, handle = pair.exporter(f"ipc.export({pointer})")
    pair.importer(f"ipc.take('{handle}')")
    pair.exporter.kill()
    heir = pair.world.session()
    assert heir("start()") == 0
    assert pair.shown() == {pair.importer.process.pid: 64}
    pair.importer.kill()
    assert pair.used() == 0


def test_opening_again_gives_the_same_pointer_and_needs_as_many_closes(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    _, handle = pair.exporter(f"ipc.export({pointer})")
    first, again = (pair.importer(f"ipc.take('{handle}')") for _ in range(2))
    assert first == again
    pair.exporter.kill()
    assert [pair.importer(f"ipc.close({first[1]})"), pair.used()] == [0, 64]
    assert [pair.importer(f"ipc.close({first[1]})"), pair.used()] == [0, 0]
    assert pair.importer(f"ipc.close({first[1]})") == INVALID_VALUE


def test_every_pointer_into_an_allocation_gives_its_handle(pair: Pair) -> None:
    _, pointer = pair.exporter(f"alloc({64 * MIB})")
    first, middle = (pair.exporter(f"ipc.export({pointer + offset})") for offset in (0, MIB))
    assert first == middle


def test_small_pieces_share_the_page_they_are_in(pair: Pair) -> None:
    pointers = pair.exporter("[alloc(4096)[1] for _ in range(2)]")
    handles = [pair.exporter(f"ipc.export({pointer})")[1] for pointer in pointers]
    opened = [pair.importer(f"ipc.take('{handle}')")[1] for handle in handles]
    assert len({*opened}) == 2
    assert pair.used() == 2
    assert pair.exporter(f"[free(pointer) for pointer in {pointers}]") == [0, 0]
    assert (pair.used(), pair.shown()) == (2, {pair.importer.process.pid: 2})
    assert pair.importer(f"[ipc.close(pointer) for pointer in {opened}]") == [0, 0]
    assert pair.used() == 0


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("before", "call", "result"),
    [
        ("alloc(4096, 'cuMemAllocAsync')[1]", "ipc.export({})[0]", INVALID_VALUE),
        ("alloc(4096, 'cuMemAllocManaged')[1]", "ipc.export({})[0]", INVALID_VALUE),
        ("alloc(4096)[1]", "ipc.close({})", INVALID_VALUE),
        ("ipc.export(alloc(4096)[1])[1]", "ipc.take('{}')[0]", INVALID_CONTEXT),
        ("ipc.export(alloc(3 * 2**20)[1])[1]", "ipc.take('{}')[0]", INVALID_CONTEXT),
        ("ipc.export(alloc(4096)[1])[1]", "ipc.take('{}', 0)[0]", INVALID_VALUE),
        ("'00' * 64", "ipc.take('{}')[0]", INVALID_VALUE),
        ("'ff' * 64", "ipc.take('{}')[0]", INVALID_VALUE),
        ("0", "vmm.take({})[0]", INVALID_VALUE),
        ("vmm.create(2**21)[1]", "vmm.export({})[0]", INVALID_VALUE),
        ("pools.create()[1]", "pools.export({})[0]", INVALID_VALUE),
        ("pools.alloc(4096, pools.create(handle_types=1)[1])[1]", "pools.export_pointer({})[0]", INVALID_VALUE),
    ],
)
def test_memory_that_cannot_be_shared_is_refused(pair: Pair, before: str, call: str, result: int) -> None:
    value = pair.exporter(before)
    assert pair.exporter(call.format(value)) == result


def test_an_import_is_freed_by_its_own_function_alone(pair: Pair) -> None:
    _, handle = pair.exporter(f"ipc.export(alloc({4 * MIB})[1])")
    _, opened = pair.importer(f"ipc.take('{handle}')")
    assert pair.importer(f"[free({opened}), free({opened}, 'cuMemFreeAsync')]") == [INVALID_VALUE] * 2
    pair.importer("cuda.cuDevicePrimaryCtxRelease_v2(0)")
    pair.exporter.kill()
    assert pair.used() == 0


def test_an_import_needs_the_card_to_be_visible(pair: Pair) -> None:
    blind = pair.world.session(CUDA_VISIBLE_DEVICES="1")
    blind("start()")
    _, handle = pair.exporter(f"ipc.export(alloc({4 * MIB})[1])")
    assert blind(f"ipc.take('{handle}')") == [INVALID_DEVICE, 0]


def test_exported_physical_memory_lives_while_a_descriptor_is_open(pair: Pair) -> None:
    _, handle = pair.exporter(f"vmm.create({64 * MIB}, handle_types=vmm.POSIX_FD)")
    result, descriptor = pair.exporter(f"vmm.export({handle})")
    assert (result, pair.used()) == (0, 64)
    copy = pair.send(descriptor)
    pair.exporter.kill()
    assert (pair.used(), pair.shown()) == (64, {})
    assert pair.importer(f"alloc({(81920 - 63) * MIB})")[0] == OUT_OF_MEMORY
    result, taken = pair.importer(f"vmm.take({copy})")
    assert (result, pair.used(), pair.shown()) == (0, 64, {pair.importer.process.pid: 64})
    pair.importer(f"os.close({copy})")
    assert pair.used() == 64
    assert pair.importer(f"vmm.release({taken})") == 0
    assert pair.used() == 0


def test_released_physical_memory_is_the_importers(pair: Pair) -> None:
    _, handle = pair.exporter(f"vmm.create({64 * MIB}, handle_types=vmm.POSIX_FD)")
    descriptor = pair.exporter(f"vmm.export({handle})")[1]
    copy = pair.send(descriptor)
    _, taken = pair.importer(f"vmm.take({copy})")
    assert pair.shown() == {pair.exporter.process.pid: 64}
    pair.exporter(f"[vmm.release({handle}), os.close({descriptor})]")
    pair.importer(f"os.close({copy})")
    assert (pair.used(), pair.shown()) == (64, {pair.importer.process.pid: 64})
    address = pair.importer(f"vmm.mapped({taken}, {64 * MIB})")
    assert pair.importer(f"vmm.release({taken})") == 0
    assert (pair.used(), pair.shown()) == (64, {pair.importer.process.pid: 64})
    pair.importer(f"vmm.unmap({address}, {64 * MIB})")
    assert pair.used() == 0


def test_a_process_is_shown_with_its_own_import_once_no_descriptor_is_open(pair: Pair) -> None:
    _, handle = pair.exporter(f"vmm.create({64 * MIB}, handle_types=vmm.POSIX_FD)")
    descriptor = pair.exporter(f"vmm.export({handle})")[1]
    result, taken = pair.exporter(f"vmm.take({descriptor})")
    assert (result, pair.used()) == (0, 64)
    pair.exporter(f"vmm.release({handle})")
    assert (pair.used(), pair.shown()) == (64, {})
    pair.exporter(f"os.close({descriptor})")
    assert (pair.used(), pair.shown()) == (64, {pair.exporter.process.pid: 64})
    pair.exporter(f"vmm.release({taken})")
    assert pair.used() == 0


def test_memory_held_only_by_an_array_is_counted_with_no_process(pair: Pair) -> None:
    _, handle = pair.exporter(f"vmm.create({4 * MIB}, usage=arrays.TILE_POOL)")
    _, array = pair.exporter("arrays.cube(512, 512, 0, arrays.SPARSE)")
    pair.exporter(f"arrays.map_memory({array}, {handle})")
    address = pair.exporter(f"vmm.mapped({handle}, {4 * MIB})")
    pair.exporter(f"vmm.release({handle})")
    assert pair.shown() == {pair.exporter.process.pid: 4}
    pair.exporter(f"vmm.unmap({address}, {4 * MIB})")
    assert (pair.used(), pair.shown()) == (4, {})
    assert pair.exporter(f"arrays.destroy({array})") == 0
    assert pair.used() == 0


def test_of_an_exported_pool_its_exported_pointers_stay(pair: Pair) -> None:
    """The memory is counted with no process, and stays until the importer has destroyed the pool."""
    _, pool = pair.exporter("pools.create(handle_types=pools.POSIX_FD)")
    _, pointer = pair.exporter(f"pools.alloc({40 * MIB}, {pool})")
    descriptor = pair.exporter(f"pools.export({pool})")[1]
    _, data = pair.exporter(f"pools.export_pointer({pointer})")
    pair.exporter(f"pools.alloc({40 * MIB}, {pool})")
    assert (pair.used(), pair.shown()) == (96, {pair.exporter.process.pid: 96})
    copy = pair.send(descriptor)
    result, theirs = pair.importer(f"pools.take({copy})")
    assert (result, pair.importer(f"os.close({copy})")) == (0, None)
    result, opened = pair.importer(f"pools.take_pointer({theirs}, '{data}')")
    assert (result, pair.importer(f"fill({opened}, {40 * MIB})")) == (0, 0)
    assert pair.importer(f"pools.take_pointer({theirs}, '{data}')") == [0, opened]
    assert pair.importer(f"pools.alloc(4096, {theirs})") == [INVALID_VALUE, 0]
    pair.exporter.kill()
    assert (pair.used(), pair.shown()) == (64, {})
    assert pair.importer(f"[free({opened}, 'cuMemFreeAsync') for _ in range(2)]") == [0, INVALID_VALUE]
    assert pair.used() == 64
    assert pair.importer(f"pools.destroy({theirs})") == 0
    assert pair.used() == 0


@pytest.mark.parametrize("last", ["pools.destroy({pool})", "os.close({descriptor})"])
def test_what_was_exported_freed_and_trimmed_stays_until_its_pool_and_descriptors_end(pair: Pair, last: str) -> None:
    _, pool = pair.exporter("pools.create(handle_types=pools.POSIX_FD)")
    names = {"pool": pool, "descriptor": pair.exporter(f"pools.export({pool})")[1]}
    first = pair.exporter(f"pools.alloc({64 * MIB}, {pool})")[1]
    _, data = pair.exporter(f"pools.export_pointer({first})")
    pair.exporter(f"[free({first}, 'cuMemFreeAsync'), pools.trim({pool}, 0)]")
    assert (pair.used(), pair.shown()) == (64, {})
    _, again = pair.exporter(f"pools.alloc({64 * MIB}, {pool})")
    assert (again, pair.used(), pair.shown()) == (first, 128, {pair.exporter.process.pid: 64})
    assert pair.exporter(f"pools.export_pointer({again})") == [0, data]
    assert (pair.used(), pair.shown()) == (64, {pair.exporter.process.pid: 64})
    pair.exporter(f"[free({first}, 'cuMemFreeAsync'), pools.trim({pool}, 0)]")
    ends = {"pools.destroy({pool})", "os.close({descriptor})"}
    for end in (*(ends - {last}), last):
        assert pair.used() == 64
        pair.exporter(end.format(**names))
    assert pair.used() == 0


@pytest.mark.parametrize(("then", "kept"), [(32, 64), (64, 64), (90, 96)])
def test_another_pointer_that_is_exported_replaces_what_was_kept_at_its_place(pair: Pair, then: int, kept: int) -> None:
    _, pool = pair.exporter("pools.create(handle_types=pools.POSIX_FD)")
    pair.exporter(f"pools.export({pool})")
    for size in (64, then):
        pointer = pair.exporter(f"pools.alloc({size * MIB}, {pool})")[1]
        pair.exporter(f"pools.export_pointer({pointer})")
        pair.exporter(f"[free({pointer}, 'cuMemFreeAsync'), pools.trim({pool}, 0)]")
    assert (pair.used(), pair.shown()) == (kept, {})


def test_the_file_of_descriptors_is_there_for_processes_of_any_user(world: World) -> None:
    assert (world.state / "shares").stat().st_mode & 0o777 == 0o666


@pytest.mark.heavy
def test_killing_an_exporter_at_work_leaves_what_is_open(make_world: Callable[..., World]) -> None:
    """Exporters create and free shared memory in a loop; each is killed at a random instant."""
    chance = random.Random(5)
    world = make_world(state_directory.make_cards(1))
    keeper = world.session()
    keeper("start()")
    for _ in range(10):
        exporter = world.session()
        exporter("start()")
        _, handle = exporter(f"ipc.export(alloc({2 * MIB})[1])")
        _, opened = keeper(f"ipc.take('{handle}')")
        exporter.tell(f"[free((ipc.export(p := alloc({2 * MIB})[1]), p)[1]) for _ in range(100000)]")
        time.sleep(chance.random() * 0.05)
        exporter.kill()
        assert sum(usage.bytes_by_card(world.state).values()) == 2 * MIB
        assert keeper(f"ipc.close({opened})") == 0
        assert usage.bytes_by_card(world.state) == {}
