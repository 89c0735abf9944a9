"""Memory that a process has imported stays charged, once, when its owner ends or frees it, with and without NVML."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.charge import test_nvml_failures as failures
from tests.limiter.conftest import MIB, Container

LIMIT_MIB, CONTEXT_MIB, SIZE_MIB = 256, 20, 64
OUT_OF_MEMORY = 2
IS_INCOMPLETE_AT = 762112 + 4  # in a region: whether memory was shared that has no row


@dataclass
class Scene:
    """Processes of one container that share memory of one class."""

    container: Container
    kind: str
    paths: Iterator[str]
    contexts: int = 0
    handles: dict[str, object] = field(default_factory=dict)

    def process(self) -> ProbeSession:
        session = failures.started(self.container)
        self.contexts += 1
        return session

    def make(self, owner: ProbeSession, mib: int = SIZE_MIB) -> int:
        """Memory of the owner's that it can export; a pointer or a handle."""
        call = f"alloc({mib * MIB})" if self.kind == "ipc" else f"vmm.create({mib * MIB}, handle_types=vmm.POSIX_FD)"
        result, made = owner(call)
        assert result == 0
        return int(made)

    def export(self, owner: ProbeSession, made: int) -> object:
        result, exported = owner(f"ipc.export({made})" if self.kind == "ipc" else f"vmm.export({made})")
        assert result == 0
        return exported

    def take(self, owner: ProbeSession, exported: object, importer: ProbeSession) -> tuple[int, int]:
        """Result and what is imported: a pointer, a handle, or external memory."""
        if self.kind == "ipc":
            return tuple(importer(f"ipc.take('{exported}')"))
        path = next(self.paths)
        importer(f"ipc.listen('{path}')")
        owner(f"ipc.send('{path}', {exported})")
        received = importer(f"ipc.receive('{path}')")
        if self.kind == "external":
            return tuple(importer(f"external.take({received}, {SIZE_MIB * MIB})"))
        return tuple(importer(f"(vmm.take({received}), os.close({received}))[0]"))

    def shared(self, owner: ProbeSession, *importers: ProbeSession) -> tuple[int, list[int]]:
        """Memory that these processes have taken, with no descriptor of it left open."""
        made = self.make(owner)
        exported = self.export(owner, made)
        taken = [self.take(owner, exported, importer) for importer in importers]
        if self.kind != "ipc":
            owner(f"os.close({exported})")
        assert [result for result, _ in taken] == [0] * len(importers)
        return made, [each for _, each in taken]

    def close(self, importer: ProbeSession, taken: int) -> None:
        call = {"ipc": "ipc.close", "physical": "vmm.release", "external": "external.destroy"}[self.kind]
        assert importer(f"{call}({taken})") == 0

    def free(self, owner: ProbeSession, made: int) -> None:
        assert owner(f"free({made})" if self.kind == "ipc" else f"vmm.release({made})") == 0

    def nvml_fails(self) -> None:
        state_directory.inject_nvml_failures(
            self.container.world.state, state_directory.NvmlFailures(results=(999,), percent=100, seed=1)
        )

    def kill(self, session: ProbeSession, witness: ProbeSession) -> None:
        """Ends a process, and lets another one notice: an allocation that cannot fit looks for ended processes."""
        session.kill()
        self.contexts -= 1
        assert witness(f"alloc({2 * LIMIT_MIB * MIB})")[0] == OUT_OF_MEMORY

    def charged(self) -> int:
        """MiB that are charged beside the contexts."""
        return self.container.used_mib() - self.contexts * CONTEXT_MIB

    def held(self) -> int:
        """MiB on the card beside the contexts."""
        return self.container.world.mib_used() - self.contexts * CONTEXT_MIB

    def reconciled(self, *sessions: ProbeSession) -> tuple[int, int]:
        """MiB charged and held after NVML has answered."""
        failures.reconcile(self.container, *sessions)
        return self.charged(), self.held()


@pytest.fixture(params=["ipc", "physical", "external"])
def scene(
    request: pytest.FixtureRequest, make_world: Callable[..., World], make_container: Callable[..., Container]
) -> Scene:
    world = make_world(tuple(replace(card, context_mib=CONTEXT_MIB) for card in state_directory.make_cards(1)))
    container = replace(make_container(f"{LIMIT_MIB}MiB"), world=world)
    return Scene(container, request.param, (str(world.state / f"socket{number}") for number in count()))


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("end", ["kill", "free"])
def test_an_importer_keeps_the_charge_of_an_owner_that_ends(scene: Scene, end: str, fails: bool) -> None:
    owner, importer = scene.process(), scene.process()
    made, (taken,) = scene.shared(owner, importer)
    assert scene.charged() == SIZE_MIB
    if fails:
        scene.nvml_fails()
    if end == "kill":
        scene.kill(owner, importer)
    else:
        scene.free(owner, made)
    assert (scene.charged(), scene.held()) == (SIZE_MIB, SIZE_MIB)
    assert importer(f"alloc({(LIMIT_MIB - SIZE_MIB - scene.contexts * CONTEXT_MIB + 2) * MIB})")[0] == OUT_OF_MEMORY
    assert scene.reconciled(importer) == (SIZE_MIB, SIZE_MIB)
    scene.close(importer, taken)
    assert scene.reconciled(importer) == (0, 0)


def test_what_nobody_has_imported_ends_with_its_owner(scene: Scene) -> None:
    owner, other = scene.process(), scene.process()
    made, (taken,) = scene.shared(owner, other)
    scene.close(other, taken)
    scene.export(owner, made)
    scene.nvml_fails()
    scene.kill(owner, other)
    assert (scene.charged(), scene.held()) == (0, 0)


@pytest.mark.heavy
def test_the_last_of_several_importers_ends_the_charge(scene: Scene) -> None:
    """While NVML fails, closed and killed importers leave the memory to the others."""
    owner, first, second, third = (scene.process() for _ in range(4))
    _, (taken, _, last) = scene.shared(owner, first, second, third)
    scene.nvml_fails()
    scene.kill(owner, first)
    assert scene.charged() == SIZE_MIB
    scene.close(first, taken)
    assert scene.charged() == SIZE_MIB
    scene.kill(second, first)
    assert (scene.charged(), scene.held()) == (SIZE_MIB, SIZE_MIB)
    scene.close(third, last)
    assert (scene.charged(), scene.held()) == (0, 0)


@pytest.mark.heavy
def test_several_importers_are_charged_once_when_nvml_answers(scene: Scene) -> None:
    owner, first, second = (scene.process() for _ in range(3))
    scene.shared(owner, first, second)
    scene.nvml_fails()
    scene.kill(owner, first)
    assert scene.reconciled(first) == (SIZE_MIB, SIZE_MIB)
    scene.nvml_fails()
    scene.kill(first, second)
    assert (scene.charged(), scene.held()) == (SIZE_MIB, SIZE_MIB)
    assert scene.reconciled(second) == (SIZE_MIB, SIZE_MIB)
    assert scene.container.region().cards[0].orphaned_bytes == 0


def test_a_program_that_is_replaced_leaves_what_others_have_taken(scene: Scene) -> None:
    owner, importer = scene.process(), scene.process()
    scene.shared(owner, importer)
    scene.nvml_fails()
    program = "os.execv(sys.executable, [sys.executable, '-m', 'tests.cuda_calls.session'])"
    assert owner(f"print(0, flush=True) or {program}") == 0
    assert owner("1") == 1
    scene.contexts -= 1
    assert (scene.charged(), scene.held()) == (SIZE_MIB, SIZE_MIB)


@pytest.mark.heavy
def test_the_next_program_s_exports_are_other_memory(scene: Scene) -> None:
    """A program that replaces itself by `exec` keeps its pid and its start time, and numbers its exports anew."""
    owner, importer, other = (scene.process() for _ in range(3))
    scene.shared(owner, importer, other)
    scene.nvml_fails()
    program = "os.execv(sys.executable, [sys.executable, '-m', 'tests.cuda_calls.session'])"
    assert owner(f"print(0, flush=True) or {program}") == 0
    assert owner("start()") == 0
    scene.export(owner, scene.make(owner, 2))
    charged = scene.charged()
    scene.kill(other, importer)
    assert scene.held() == SIZE_MIB + 2
    assert scene.charged() == charged


@pytest.mark.heavy
def test_where_rows_are_missing_freed_memory_keeps_its_charge_until_nvml_answers(scene: Scene) -> None:
    owner, importer = scene.process(), scene.process()
    made = scene.make(owner)
    exported = scene.export(owner, made)
    _, taken = scene.take(owner, exported, importer)
    with (scene.container.folder / "region").open("r+b") as file:
        file.seek(IS_INCOMPLETE_AT)
        file.write(b"\1")
    scene.nvml_fails()
    scene.free(owner, made)
    if scene.kind != "ipc":
        owner(f"os.close({exported})")
    assert owner(f"alloc({2 * LIMIT_MIB * MIB})")[0] == OUT_OF_MEMORY
    assert (scene.charged(), scene.held()) == (SIZE_MIB, SIZE_MIB)
    assert scene.reconciled(owner, importer) == (SIZE_MIB, SIZE_MIB)
    scene.close(importer, taken)
    assert scene.reconciled(owner, importer) == (0, 0)


def test_a_forked_child_has_no_part_in_it(scene: Scene) -> None:
    owner, importer = scene.process(), scene.process()
    scene.shared(owner, importer)
    scene.nvml_fails()
    for session in (owner, importer):
        session("in_fork('0')")
    assert scene.charged() == SIZE_MIB
    scene.kill(owner, importer)
    importer("in_fork('0')")
    assert scene.charged() == SIZE_MIB


@pytest.mark.heavy
@pytest.mark.parametrize("scene", ["ipc"], indirect=True)
@pytest.mark.parametrize("reset", ["cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxRelease_v2"])
def test_memory_opened_by_a_handle_ends_with_the_context(scene: Scene, reset: str) -> None:
    owner, importer, other = (scene.process() for _ in range(3))
    scene.shared(owner, importer)
    scene.shared(importer, other)
    scene.nvml_fails()
    assert importer(f"cuda.{reset}(0)") == 0
    scene.contexts -= 1
    scene.kill(owner, other)
    assert scene.held() == SIZE_MIB
    assert scene.charged() in {SIZE_MIB, SIZE_MIB + CONTEXT_MIB}  # the context's size, until NVML answers


SERVE = """
def serve(path, rounds):
    for number in range(rounds):
        pointer = alloc((2 + 4 * (number % 5)) << 20)[1]
        with open(path + '.new', 'w') as file:
            file.write(ipc.export(pointer)[1])
        os.rename(path + '.new', path)
        if number % 3: free(pointer)
def use(path, rounds):
    held = []
    for number in range(rounds):
        result, pointer = ipc.take(open(path).read()) if os.path.exists(path) else (1, 0)
        if result == 0: held.append(pointer)
        if len(held) > 2 or number % 2: held and ipc.close(held.pop(0))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("scene", ["ipc"], indirect=True)
@pytest.mark.parametrize("victim", ["owner", "importer"])
def test_processes_killed_at_any_moment_leave_what_is_held(scene: Scene, victim: str) -> None:
    """Whatever they did at that moment: NVML fails while they share, so only the region's rows can be right."""
    chance, witness, path = random.Random(41), scene.process(), next(scene.paths)
    for _ in range(4):
        state_directory.inject_faults(scene.container.world.state)
        sessions = {name: scene.process() for name in ("owner", "importer")}
        for session in sessions.values():
            session(f"exec({SERVE!r}, globals())")
        scene.nvml_fails()
        sessions["owner"].tell(f"serve('{path}', 12)")
        sessions["importer"].tell(f"use('{path}', 60)")
        time.sleep(chance.uniform(0, 0.03))
        killed = sessions.pop(victim)
        killed.kill()
        (other,) = sessions.values()
        other.answer()
        scene.contexts -= 1
        assert witness(f"alloc({2 * LIMIT_MIB * MIB})")[0] == OUT_OF_MEMORY
        assert scene.charged() == scene.held()
        scene.kill(other, witness)
        assert (scene.charged(), scene.held()) == (0, 0)
