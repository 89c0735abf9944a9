"""The limiter under sanitizers: pure modules with random bytes, and the whole library in a program with threads."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from limiter import build
from simgpu import state_directory, usage
from simgpu.world import World
from tests.limiter.conftest import CHECK_LOCKS, UNHOOKED, Container
from tests.limiter.fake_arbiter import MS, Arbiter

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
MIX = (HERE / "mix.c", HERE / "mix_steps.c")


def compiled(program: Path, sanitizers: str, *sources: Path) -> Path:
    """Builds with the system's compiler, because the one of the ziglang wheel has no address sanitizer."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs gcc or clang with its sanitizers")
    options = [
        f"-fsanitize={sanitizers}",
        "-fno-sanitize-recover=all",
        "-g",
        "-O1",
        "-Wno-error",  # gcc gives warnings that the limiter's own compiler does not give
        "-Werror=implicit-function-declaration",
        CHECK_LOCKS,
    ]
    command = [compiler, *build.flags(), *options, *map(str, sources), "-ldl", "-lpthread", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find -l" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("the system's compiler has no such sanitizers")
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="session")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("fuzz") / "fuzz", "address,undefined", HERE / "fuzz.c", *UNHOOKED)


@pytest.fixture(scope="session")
def mix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("mix") / "mix", "address,undefined", *MIX, *UNHOOKED)


@pytest.fixture(scope="session")
def racing_mix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("racing") / "mix", "thread", *MIX, *UNHOOKED)


@pytest.fixture(scope="session")
def first_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    return compiled(folder / "first_calls", "thread", HERE / "first_calls.c", *UNHOOKED)


@pytest.fixture(params=[None, 60], ids=["whole card", "share"])
def container(
    request: pytest.FixtureRequest, make_world: Callable[..., World], make_container: Callable[..., Container]
) -> Container:
    """A container on cards whose contexts and modules take memory, so that measurements happen."""
    make_world(tuple(replace(card, context_mib=4, module_kib=100) for card in state_directory.make_cards(1)))
    return make_container("64MiB", request.param)


def run(container: Container, program: Path, *arguments: str, **more: str) -> None:
    env = container.world.environment(**{**container.env, "LD_PRELOAD": "", "VGPU_LOG": "off", **more})
    done = subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_and_histories_are_clean(fuzz: Path, seed: int) -> None:
    done = subprocess.run([fuzz, str(seed)], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", range(2))
def test_concurrent_calls_of_every_kind_leak_nothing(container: Container, mix: Path, seed: int) -> None:
    run(container, mix, "4", "600", str(seed))
    assert container.region().cards[0].refusals > 0


@pytest.mark.parametrize("seed", range(2))
def test_concurrent_calls_of_every_kind_do_not_race(container: Container, racing_mix: Path, seed: int) -> None:
    run(container, racing_mix, "4", "600", str(seed))


@pytest.mark.parametrize("seed", range(2))
def test_concurrent_arrays_never_exceed_the_limit(
    make_world: Callable[..., World], make_container: Callable[..., Container], racing_mix: Path, seed: int
) -> None:
    """Compared with the peak of the card. Small arrays share chunks; a refused array leaves no room in a chunk."""
    world = make_world(tuple(replace(card, context_mib=4) for card in state_directory.make_cards(1)))
    container = make_container("16MiB")
    run(container, racing_mix, "8", "600", str(seed), "arrays")
    assert container.region().cards[0].refusals > 0
    assert usage.peak_bytes_by_card(world.state)[world.cards[0].uuid] <= 16 << 20


@pytest.mark.parametrize("arguments", [("4", "600", "1"), ("8", "1500", "2", "launches")], ids=["any", "launches"])
@pytest.mark.parametrize("sanitized", ["mix", "racing_mix"])
def test_threads_with_an_arbiter_are_clean(
    container: Container,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sanitized: str,
    arguments: tuple[str, ...],
) -> None:
    """The arbiter's pages change meanwhile, and it is closed and started again after the first message."""
    program = request.getfixturevalue(sanitized)
    path = tmp_path / "socket"
    finished, arbiters = threading.Event(), [Arbiter(path, depth_ns=MS // 5)]

    def has_messages() -> bool:
        return any(client.heard for arbiter in arbiters for client in arbiter.clients)

    def restart_repeatedly() -> None:
        while not finished.wait(0.01) and not has_messages():
            pass
        while not finished.wait(0.7):
            arbiters[-1].close()
            finished.wait(0.3)
            arbiters.append(Arbiter(path, depth_ns=MS // 5, contended=len(arbiters) % 3 > 0))

    thread = threading.Thread(target=restart_repeatedly)
    thread.start()
    try:
        run(container, program, *arguments, VGPU_ARBITER_SOCKET=str(path))
    finally:
        finished.set()
        thread.join()
        arbiters[-1].close()
    assert has_messages()


@pytest.mark.parametrize("seed", range(2))
def test_no_thread_allocates_from_a_current_pool_after_its_end(
    make_world: Callable[..., World], make_container: Callable[..., Container], racing_mix: Path, seed: int
) -> None:
    """One thread changes the current pool and destroys the former one, while others allocate from the current pool.

    A fragmented pool may grow by one step of 32 MiB more than was reserved, which is noticed after the call.
    """
    world = make_world(tuple(replace(card, context_mib=4) for card in state_directory.make_cards(1)))
    run(replace(make_container("512MiB"), world=world), racing_mix, "8", "800", str(seed), "pools")
    assert usage.peak_bytes_by_card(world.state)[world.cards[0].uuid] <= (512 + 32) << 20


@pytest.mark.parametrize("seed", range(3))
def test_random_writes_to_the_region_are_harmless(container: Container, mix: Path, seed: int) -> None:
    run(container, mix, "4", "300", str(seed), "hostile")


def test_threads_on_a_card_smaller_than_their_limit_spill(
    make_world: Callable[..., World], make_container: Callable[..., Container], mix: Path
) -> None:
    make_world(state_directory.make_cards(1, memory_mib=40))
    container = make_container("64MiB", memory_policy="spill")
    run(container, mix, "4", "600", "1")
    assert container.region().cards[0].spills > 0


def test_threads_that_use_a_card_for_the_first_time_together_do_not_race(
    make_world: Callable[..., World], make_container: Callable[..., Container], first_calls: Path
) -> None:
    world = make_world(state_directory.make_cards(state_directory.MAX_CARDS))
    for _ in range(5):
        run(replace(make_container("1GiB"), world=world), first_calls)
