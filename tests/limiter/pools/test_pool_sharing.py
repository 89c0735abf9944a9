"""Memory of exported pools is charged once while any process holds it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2
CONTEXT = 20
SHARED = 64
LEAVE = "[free({pointer}), pools.destroy({pool})]"
END = "[free({pointer}, 'cuMemFreeAsync'), pools.trim({pool}, 0)]"


@dataclass
class Exporter:
    """A process with a pool that other processes can import."""

    session: ProbeSession
    paths: Iterator[str]

    def __post_init__(self) -> None:
        self.pool = self.session("pools.create(handle_types=pools.POSIX_FD)")[1]
        self.descriptor = self.session(f"pools.export({self.pool})")[1]

    def alloc(self, mib: int = SHARED) -> int:
        result, pointer = self.session(f"pools.alloc({mib * MIB}, {self.pool})")
        assert result == 0
        return int(pointer)

    def export(self, pointer: int) -> str:
        result, data = self.session(f"pools.export_pointer({pointer})")
        assert result == 0
        return str(data)

    def end(self, pointer: int) -> None:
        assert self.session(END.format(pointer=pointer, pool=self.pool)) == [0, 0]

    def opened_by(self, importer: ProbeSession) -> int:
        """The handle of the pool in the importer, which closes the descriptor."""
        path = next(self.paths)
        importer(f"ipc.listen('{path}')")
        self.session(f"ipc.send('{path}', {self.descriptor})")
        copy = importer(f"ipc.receive('{path}')")
        result, pool = importer(f"[pools.take({copy}), os.close({copy})][0]")
        assert result == 0
        return int(pool)

    def close(self) -> None:
        self.session(f"os.close({self.descriptor})")


@dataclass(frozen=True)
class Scene:
    """Containers of 256 MiB beside a context for each of three processes."""

    containers: tuple[Container, Container]
    paths: Iterator[str]

    def process(self, container: int = 0) -> ProbeSession:
        session = self.containers[container].session()
        assert session("start()") == 0
        return session

    def exporter(self, container: int = 0) -> Exporter:
        return Exporter(self.process(container), self.paths)

    def used(self, contexts: int, container: int = 0) -> int:
        """MiB charged to the container without those of `contexts` contexts."""
        return self.containers[container].used_mib() - contexts * CONTEXT

    def peak(self) -> int:
        """The highest charge so far, in MiB."""
        return self.containers[0].region().cards[0].peak_bytes // MIB

    def card(self, contexts: int) -> int:
        """MiB in use on the card without those of `contexts` contexts, whichever process NVML counts them with."""
        world = self.containers[0].world
        return usage.bytes_by_card(world.state).get(world.cards[0].uuid, 0) // MIB - contexts * CONTEXT


@pytest.fixture
def scene(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Scene:
    world = make_world(tuple(replace(card, context_mib=CONTEXT) for card in state_directory.make_cards(1)))
    first, second = (replace(make_container(f"{256 + 3 * CONTEXT}MiB"), world=world) for _ in range(2))
    return Scene((first, second), (str(world.state / f"socket{number}") for number in count()))


@pytest.mark.heavy
def test_exported_memory_of_a_killed_exporter_stays_charged(scene: Scene) -> None:
    exporter, importer, third = scene.exporter(), scene.process(), scene.process()
    pool = exporter.opened_by(importer)
    data = exporter.export(exporter.alloc())
    exporter.alloc(32)
    _, pointer = importer(f"pools.take_pointer({pool}, '{data}')")
    assert (scene.used(3), scene.card(3)) == (96, 96)
    exporter.session.kill()
    assert third(f"alloc({256 * MIB})")[0] == OUT_OF_MEMORY
    assert (scene.used(2), scene.card(2)) == (SHARED, SHARED)
    assert importer("info()")[1] == (256 + CONTEXT - SHARED) * MIB
    assert importer(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert scene.used(2) == SHARED
    assert importer(f"pools.destroy({pool})") == 0
    assert (scene.used(2), scene.card(2)) == (0, 0)
    assert third(f"alloc({256 * MIB})")[0] == 0


def test_measuring_a_dead_exporter_keeps_the_charge_of_imported_memory(scene: Scene) -> None:
    """A measurement may come before the dead exporter's slot is cleared."""
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    importer(f"pools.take_pointer({pool}, '{exporter.export(exporter.alloc())}')")
    exporter.session.kill()
    for _ in range(5):
        importer(f"[ipc.close(0), free(alloc({2 * MIB})[1]), pools.trim(pools.of_device(), 0)]")
        assert scene.used(1) >= SHARED
    importer.kill()
    assert scene.process()(f"alloc({290 * MIB})")[0] == 0


def test_after_the_exporter_destroys_its_pool_the_importers_are_charged(scene: Scene) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool, pointer = exporter.opened_by(importer), exporter.alloc()
    exporter.close()
    importer(f"pools.take_pointer({pool}, '{exporter.export(pointer)}')")
    exporter.session(f"[free({pointer}, 'cuMemFreeAsync'), pools.destroy({exporter.pool})]")
    assert (scene.used(2), scene.card(2), scene.peak()) == (SHARED, SHARED, SHARED + 2 * CONTEXT)
    importer.kill()
    assert exporter.session(f"alloc({256 * MIB})")[0] == 0


def test_importers_of_one_memory_are_charged_once(scene: Scene) -> None:
    exporter, importers = scene.exporter(), [scene.process(), scene.process()]
    pools = [exporter.opened_by(importer) for importer in importers]
    data = exporter.export(exporter.alloc())
    taken = [importer(f"pools.take_pointer({pool}, '{data}')") for importer, pool in zip(importers, pools, strict=True)]
    assert [result for result, _ in taken] == [0, 0]
    exporter.session.kill()
    assert importers[0](f"alloc({256 * MIB})")[0] == OUT_OF_MEMORY
    assert scene.used(2) == SHARED
    importers[0].kill()
    assert importers[1](f"alloc({256 * MIB})")[0] == OUT_OF_MEMORY
    assert scene.used(1) == SHARED
    importers[1](f"[free({taken[1][1]}), pools.destroy({pools[1]})]")
    assert (scene.used(1), scene.card(1)) == (0, 0)


def test_pointers_that_were_not_freed_stay_charged_after_the_imported_pool(scene: Scene) -> None:
    """The driver keeps the memory until the process ends, whether or not the pointer is freed later."""
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    _, pointer = importer(f"pools.take_pointer({pool}, '{exporter.export(exporter.alloc())}')")
    exporter.session.kill()
    assert importer(f"pools.destroy({pool})") == 0
    for _ in range(2):
        assert importer(f"alloc({290 * MIB})")[0] == OUT_OF_MEMORY
        assert (scene.used(1), scene.card(1)) == (SHARED, SHARED)
        importer(f"free({pointer})")
    importer.kill()
    assert scene.process()(f"alloc({290 * MIB})")[0] == 0


def test_pointers_in_the_same_memory_are_charged_once(scene: Scene) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    for _ in range(4):
        importer(f"pools.take_pointer({pool}, '{exporter.export(exporter.alloc(8))}')")
    exporter.session.kill()
    assert importer(f"alloc({290 * MIB})")[0] == OUT_OF_MEMORY
    assert scene.used(1) == 32


def test_an_import_from_another_container_is_charged_at_once(scene: Scene) -> None:
    exporter, importer = scene.exporter(container=1), scene.process()
    pool, data = exporter.opened_by(importer), exporter.export(exporter.alloc())
    _, pointer = importer(f"pools.take_pointer({pool}, '{data}')")
    assert (scene.used(1), scene.used(1, container=1)) == (SHARED, SHARED)
    assert importer(f"pools.take_pointer({pool}, '{data}')")[0] == 0
    other = exporter.opened_by(importer)
    _, again = importer(f"pools.take_pointer({other}, '{data}')")
    exporter.session.kill()
    assert scene.used(1) == SHARED
    importer(LEAVE.format(pointer=pointer, pool=pool))
    assert scene.used(1) == SHARED
    importer(LEAVE.format(pointer=again, pool=other))
    assert scene.used(1) == 0


def test_a_refused_import_is_charged_while_the_driver_keeps_it(scene: Scene) -> None:
    """The driver keeps the memory while the pool exists, also after the pointer is freed."""
    exporter, importer = scene.exporter(container=1), scene.process()
    pool, data = exporter.opened_by(importer), exporter.export(exporter.alloc())
    assert importer(f"alloc({250 * MIB})")[0] == 0
    assert importer(f"pools.take_pointer({pool}, '{data}')") == [OUT_OF_MEMORY, 0]
    assert (scene.used(1), scene.containers[0].region().cards[0].refusals) == (250 + SHARED, 1)
    importer(f"pools.destroy({pool})")
    assert scene.used(1) == 250


@pytest.mark.heavy
def test_with_a_full_table_the_importer_is_charged(scene: Scene) -> None:
    """The charge ends with the importer's pool."""
    crowd, importer = scene.exporter(), scene.process()
    for _ in range(512):
        crowd.export(crowd.session(f"pools.alloc(65536, {crowd.pool})")[1])
    exporter = scene.exporter()
    pool, data = exporter.opened_by(importer), exporter.export(exporter.alloc())
    _, pointer = importer(f"pools.take_pointer({pool}, '{data}')")
    assert scene.used(3) == 32 + SHARED + SHARED
    exporter.session.kill()
    crowd.session.kill()
    assert importer(f"alloc({290 * MIB})")[0] == OUT_OF_MEMORY
    assert scene.used(1) == SHARED
    importer(LEAVE.format(pointer=pointer, pool=pool))
    assert (scene.used(1), scene.card(1)) == (0, 0)


def test_rows_of_the_image_before_an_exec_end_with_its_slot(scene: Scene) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    _, pointer = importer(f"pools.take_pointer({pool}, '{exporter.export(exporter.alloc())}')")
    exporter.session.process.stdin.write("os.execvp('sleep', ['sleep', '60'])\n")  # type: ignore[union-attr]
    exporter.session.process.stdin.flush()  # type: ignore[union-attr]
    while (used := scene.used(1)) != SHARED:
        assert used > SHARED
    importer(LEAVE.format(pointer=pointer, pool=pool))
    assert scene.used(1) == 0


@pytest.mark.heavy
def test_the_child_of_a_fork_shares_nothing(scene: Scene) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    _, pointer = importer(f"pools.take_pointer({pool}, '{exporter.export(exporter.alloc())}')")
    child = importer("fork_and_stay()")
    importer(LEAVE.format(pointer=pointer, pool=pool))
    exporter.session.kill()
    assert scene.process()(f"alloc({256 * MIB})")[0] == 0
    importer(f"os.kill({child}, 9)")


def both(scene: Scene, contexts: int = 1) -> tuple[int, int]:
    """MiB that are charged, and MiB in use on the card."""
    return scene.used(contexts), scene.card(contexts)


def test_lost_memory_stays_charged_while_the_pool_exists(scene: Scene) -> None:
    """Repeated at different addresses: allocations in between take the former ones."""
    exporter = scene.exporter()
    exporter.close()
    for number in (1, 2, 3):
        pointer = exporter.alloc()
        exporter.export(pointer)
        exporter.session(f"alloc({2 * MIB})")
        exporter.end(pointer)
        assert both(scene) == (number * (SHARED + 2),) * 2
    assert exporter.session(f"alloc({100 * MIB})")[0] == OUT_OF_MEMORY
    exporter.session(f"pools.destroy({exporter.pool})")
    assert both(scene) == (6, 6)


def test_an_export_at_the_same_address_replaces_lost_memory(scene: Scene) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool = exporter.opened_by(importer)
    for _ in range(5):
        pointer = exporter.alloc()
        data = exporter.export(pointer)
        assert both(scene, 2) == (SHARED, SHARED)
        _, taken = importer(f"pools.take_pointer({pool}, '{data}')")
        importer(f"free({taken}, 'cuMemFreeAsync')")
        exporter.end(pointer)
        assert both(scene, 2) == (SHARED, SHARED)
    assert scene.peak() <= 2 * SHARED + 2 * CONTEXT


def test_an_unnoticed_shrink_is_noticed_before_the_pool_grows(scene: Scene) -> None:
    exporter = scene.exporter()
    first = exporter.alloc()
    exporter.export(first)
    exporter.session(f"[free({first}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]")
    assert scene.card(1) == SHARED
    assert exporter.session(f"pools.alloc({SHARED * MIB}, {exporter.pool})")[0] == 0
    assert both(scene) == (2 * SHARED, 2 * SHARED)


def test_memory_below_the_release_threshold_is_charged_once(scene: Scene) -> None:
    exporter = scene.exporter()
    exporter.session(f"pools.write({exporter.pool}, pools.THRESHOLD, 2**63)")
    for _ in range(3):
        pointer = exporter.alloc()
        exporter.export(pointer)
        exporter.session(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]")
        assert both(scene) == (SHARED, SHARED)


def test_measurements_by_other_processes_include_lost_memory(scene: Scene) -> None:
    exporter, other = scene.exporter(), scene.process()
    pointer = exporter.alloc()
    exporter.export(pointer)
    exporter.session(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]")
    assert other(f"alloc({220 * MIB})")[0] == OUT_OF_MEMORY
    assert both(scene, 2) == (SHARED, SHARED)
    exporter.end(0)
    assert other(f"alloc({220 * MIB})")[0] == OUT_OF_MEMORY
    assert both(scene, 2) == (SHARED, SHARED)


def test_a_process_s_own_measurement_keeps_the_charge_of_lost_memory(scene: Scene) -> None:
    """Destroying another pool measures the process."""
    exporter = scene.exporter()
    pointer = exporter.alloc()
    exporter.export(pointer)
    exporter.session(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]")
    assert exporter.session("pools.destroy(pools.create()[1])") == 0
    assert both(scene) == (SHARED, SHARED)


@pytest.mark.parametrize("is_freed", [False, True])
def test_a_descriptor_keeps_exported_memory_of_a_destroyed_pool(scene: Scene, *, is_freed: bool) -> None:
    exporter, importer = scene.exporter(), scene.process()
    pool, pointer = exporter.opened_by(importer), exporter.alloc()
    _, taken = importer(f"pools.take_pointer({pool}, '{exporter.export(pointer)}')")
    if is_freed:
        exporter.end(pointer)
    else:
        exporter.session(f"free({pointer}, 'cuMemFreeAsync')")
    exporter.session(f"pools.destroy({exporter.pool})")
    assert both(scene, 2) == (SHARED, SHARED)
    exporter.close()
    assert importer(f"alloc({220 * MIB})")[0] == OUT_OF_MEMORY
    assert exporter.session(f"alloc({220 * MIB})")[0] == OUT_OF_MEMORY
    assert both(scene, 2) == (SHARED, SHARED)
    importer(LEAVE.format(pointer=taken, pool=pool))
    assert both(scene, 2) == (0, 0)


def test_an_unused_descriptor_keeps_exported_memory_too(scene: Scene) -> None:
    exporter = scene.exporter()
    pointer = exporter.alloc()
    exporter.export(pointer)
    exporter.session(f"[free({pointer}, 'cuMemFreeAsync'), pools.destroy({exporter.pool})]")
    assert both(scene) == (SHARED, SHARED)
    assert exporter.session(f"alloc({256 * MIB})")[0] == OUT_OF_MEMORY
    exporter.close()
    assert exporter.session(f"alloc({256 * MIB})")[0] == 0
    assert both(scene) == (256, 256)
