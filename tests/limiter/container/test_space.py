"""Members of a group in space are clients of its MPS server, whatever their environment says."""

import ctypes
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container
from tests.limiter.container.test_container import MOUNT, UNSHARE
from tests.simgpu import mps_daemon
from tests.simgpu.mps_daemon import MpsDaemon
from vgpu.domain.asks import space
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import MAX_CLIENTS, SpaceGroup
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import Namespace

OUT_OF_MEMORY, ILLEGAL_ADDRESS, NOT_SUPPORTED, MAX_CLIENTS_REACHED = 2, 700, 801, 808
MPS_ENABLED, MULTIPROCESSORS = 133, 16
ALL = 132  # multiprocessors of a simulated card
GROUP = SpaceGroup(Namespace("team"), "models")
PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

MakeMember = Callable[..., "Member"]


class Member:
    """A container whose limits name a group, and the directory in which it finds the group's daemon."""

    def __init__(self, container: Container, directory: Path, membership: SpaceMembership | None) -> None:
        self.container, self.directory = container, directory
        container.limit(Limits((CardLimit(ANY_GPU, 64 * MIB, 10),), ComputePolicy.BURST, space=membership))

    def session(self, **more: str) -> ProbeSession:
        """A process that has not called cuInit."""
        return self.container.session(**{"VGPU_SPACE_DIRECTORY": str(self.directory), **more})

    def started(self, **more: str) -> ProbeSession:
        """A process with a context."""
        session = self.session(**more)
        assert session("start()") == 0
        return session

    def probe(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its log is on standard error."""
        env = {**self.container.env, "VGPU_SPACE_DIRECTORY": str(self.directory), **more}
        program = str(self.container.world.bin / "gpuprobe")
        return subprocess.run(
            [program, *arguments],
            env=self.container.world.environment(**env),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )


@pytest.fixture
def make_daemon(world: World, tmp_path: Path) -> Iterator[Callable[..., MpsDaemon]]:
    yield lambda name: MpsDaemon(world, tmp_path / name)
    mps_daemon.end_all(world)


@pytest.fixture
def daemon(make_daemon: Callable[..., MpsDaemon]) -> MpsDaemon:
    return make_daemon("group")


@pytest.fixture
def other(make_daemon: Callable[..., MpsDaemon]) -> MpsDaemon:
    """A daemon of the user's own."""
    return make_daemon("other")


@pytest.fixture
def make_member(make_container: Callable[..., Container], daemon: MpsDaemon) -> MakeMember:
    def make(percentage: int | None = None, directory: Path = daemon.directory) -> Member:
        return Member(make_container(), directory, SpaceMembership(GROUP.fingerprint, percentage))

    return make


def attribute(session: ProbeSession, which: int) -> int:
    """A device's attribute."""
    value: int = session(f"device_attribute({which})")
    return value


def test_members_are_clients_of_their_groups_server(make_member: MakeMember, daemon: MpsDaemon) -> None:
    sessions = [make_member().started(), make_member().started()]
    assert daemon.clients() == {session.process.pid for session in sessions}
    assert [attribute(session, MPS_ENABLED) for session in sessions] == [1, 1]
    assert [attribute(session, MULTIPROCESSORS) for session in sessions] == [ALL, ALL]


def test_a_members_own_daemon_never_wins(make_member: MakeMember, daemon: MpsDaemon, other: MpsDaemon) -> None:
    session = make_member().started(**other.environment)
    assert daemon.clients() == {session.process.pid}
    assert other.tell("get_server_list") == []


def test_a_program_outside_of_space_chooses_its_daemon(
    make_container: Callable[..., Container], other: MpsDaemon, tmp_path: Path
) -> None:
    session = Member(make_container(), tmp_path / "none", None).started(**other.environment)
    assert other.clients() == {session.process.pid}


def test_in_a_container_its_own_path_decides(container: Container, other: MpsDaemon) -> None:
    """/run/vgpu/space is a member's directory there; no environment variable replaces it."""
    if subprocess.run([*UNSHARE, "mount -t tmpfs none /run"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    variables = {**other.environment, "VGPU_SPACE_DIRECTORY": str(other.directory)}
    env = {"FOLDER": str(container.folder), "LD_PRELOAD": container.env["LD_PRELOAD"], **variables}
    directory = container.folder / "space"
    Member(container, directory, SpaceMembership(GROUP.fingerprint, None))
    group = MpsDaemon(container.world, directory)
    line = f"exec {container.world.bin}/gpuprobe --hold 10 alloc 2"
    command = [*UNSHARE, MOUNT + line]
    with subprocess.Popen(command, env=container.world.environment(**env), stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline()
            assert len(group.clients()) == 1
            assert other.tell("get_server_list") == []
        finally:
            running.kill()


@pytest.mark.parametrize(
    ("cap", "own", "seen"),
    [
        (50, None, 50),
        (50, "100", 50),
        (50, "20", 20),
        (50, "1e2", 50),  # strtod() reads 100 here
        (None, "25", 25),
        (None, None, 100),
        (100, "30", 30),
    ],
)
def test_a_programs_own_percentage_counts_only_where_it_is_lower(
    make_member: MakeMember, cap: int | None, own: str | None, seen: int
) -> None:
    session = make_member(cap).started(**{} if own is None else {PERCENTAGE: own})
    assert attribute(session, MULTIPROCESSORS) == ALL * seen // 100


@pytest.mark.heavy
def test_processes_of_a_container_divide_its_cap(make_member: MakeMember) -> None:
    member = make_member(50)
    first, second = member.started(), member.started()
    seen = [attribute(session, MULTIPROCESSORS) for session in (first, second)]
    assert seen == [ALL * 50 // 100, ALL * 25 // 100]
    second.kill()
    assert attribute(member.started(), MULTIPROCESSORS) == ALL * 25 // 100
    assert attribute(make_member(50).started(), MULTIPROCESSORS) == ALL * 50 // 100  # another container


def test_programs_that_a_member_starts_are_members_too(make_member: MakeMember, daemon: MpsDaemon) -> None:
    session = make_member(50).started()
    inherited = session("__import__('subprocess').run(['env'], capture_output=True, text=True, env=None).stdout")
    assert f"CUDA_MPS_PIPE_DIRECTORY={daemon.directory}" in inherited.splitlines()
    assert f"{PERCENTAGE}=50" in inherited.splitlines()


def test_a_missing_daemon_is_logged_and_the_program_runs_outside_of_the_group(
    make_member: MakeMember, tmp_path: Path
) -> None:
    done = make_member(directory=tmp_path / "missing").probe("alloc", "2")
    assert done.returncode == 0
    assert f"cuInit: no client of group {GROUP.directory} in space: no MPS daemon in {tmp_path}/missing" in done.stderr
    assert "takes turns instead" in done.stderr


def test_the_region_says_which_processes_are_outside_of_the_group(make_member: MakeMember, tmp_path: Path) -> None:
    """The device plugin reports them."""
    inside, outside = make_member(), make_member(directory=tmp_path / "missing")
    joined, alone = inside.started(), outside.started()
    assert [
        region.outside_group((member.container.folder / "region").read_bytes()) for member in (inside, outside)
    ] == [0, 1]
    joined.kill()
    alone.kill()


def test_nothing_is_logged_of_a_member_that_is_served(make_member: MakeMember) -> None:
    done = make_member(50).probe("alloc", "2")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_member_has_no_managed_memory(make_member: MakeMember, make_container: Callable[..., Container]) -> None:
    """Neither its own allocations nor pools of managed memory; other memory is as usual."""
    calls = (f"alloc({MIB}, 'cuMemAllocManaged')[0]", "pools.create(kind=pools.MANAGED)[0]")
    member, outside = make_member().started(), make_container().session()
    assert outside("start()") == 0
    assert [member(call) for call in calls] == [NOT_SUPPORTED] * 2
    assert [outside(call) for call in calls] == [0, 0]
    assert [member(f"alloc({MIB})[0]"), member("pools.create()[0]")] == [0, 0]


def test_a_member_at_its_limit_gets_an_error_that_touches_no_other(make_member: MakeMember, daemon: MpsDaemon) -> None:
    full, other = make_member().started(), make_member().started()
    assert full(f"alloc({65 * MIB})")[0] == OUT_OF_MEMORY
    assert [session(f"alloc({MIB})")[0] for session in (full, other)] == [0, 0]
    assert daemon.clients() == {full.process.pid, other.process.pid}


@pytest.mark.heavy
def test_one_process_too_many_fails_in_cuinit_and_says_why(make_member: MakeMember, daemon: MpsDaemon) -> None:
    member = make_member()
    clients = [daemon.session() for _ in range(MAX_CLIENTS)]
    assert {client("cuda.cuInit(0)") for client in clients} == {0}
    refused = member.session()
    assert refused("cuda.cuInit(0)") == MAX_CLIENTS_REACHED
    done = member.probe("info")
    assert f"cuInit: no client of group {GROUP.directory} in space: the group is full" in done.stderr
    clients[0].kill()
    deadline = time.monotonic() + 5
    while refused("cuda.cuInit(0)") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert refused("start()") == 0
    assert refused.process.pid in daemon.clients()


@pytest.mark.heavy
def test_a_failed_cuinit_leaves_no_part_of_the_cap_behind(make_member: MakeMember, daemon: MpsDaemon) -> None:
    """The second call reckons anew: what the first one wrote into the environment is not the program's own wish."""
    member = make_member(60)
    first, second = member.started(), member.session()
    others = [daemon.session() for _ in range(MAX_CLIENTS - 1)]
    assert {session("cuda.cuInit(0)") for session in others} == {0}
    assert second("cuda.cuInit(0)") == MAX_CLIENTS_REACHED
    first.kill()
    assert second("start()") == 0
    assert attribute(second, MULTIPROCESSORS) == ALL * 60 // 100


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 60))
def test_c_and_python_divide_a_cap_alike(pure: ctypes.CDLL, cap: int, own: int, processes: int) -> None:
    expected = space.percentage_of_process(cap or None, own or None, processes)
    assert pure.sm_percentage_of_process(cap, own, processes) == (expected or 0)


@given(st.integers(1, 100_00))
def test_a_percentage_with_decimals_is_rounded_up(pure: ctypes.CDLL, hundredths: int) -> None:
    text = f"{hundredths // 100}.{hundredths % 100:02d}"
    assert pure.sm_percentage_named(text.encode()) == -(-hundredths // 100)


@pytest.mark.parametrize("text", ["", "0", "0.0", "100.1", "101", "1e2", "0x32", " 50", "50 ", "-5", "5,5", "1.2.3"])
def test_a_text_that_the_driver_may_read_otherwise_is_no_percentage(pure: ctypes.CDLL, text: str) -> None:
    assert pure.sm_percentage_named(text.encode()) == 0
    assert pure.sm_percentage_named(f"{10**19 + 1}".encode()) == 0
    assert pure.sm_percentage_named(None) == 0


def seen_fault(member: Member) -> tuple[int, int] | None:
    """What a container's region says of a fault."""
    return region.seen_fault((member.container.folder / "region").read_bytes())


def illegal_access(session: ProbeSession) -> None:
    session("kernels.launch(kernels.load('fault_10'))")
    assert session("cuda.cuCtxSynchronize()") == ILLEGAL_ADDRESS


def test_clients_leave_word_of_a_fault_of_their_server_when_they_exit_at_once(make_member: MakeMember) -> None:
    """The daemon forgets a fault once its clients have exited, so that nobody was told of it."""
    hit, neighbour, idle = make_member(), make_member(), make_member()
    sessions = [member.started() for member in (hit, neighbour, idle)]
    begun = time.monotonic_ns()
    illegal_access(sessions[0])
    assert sessions[1]("kernels.launch(kernels.load('spin_10'))") == ILLEGAL_ADDRESS
    for session in sessions:
        session.kill()
    for member in (hit, neighbour):
        since, at = seen_fault(member) or (0, 0)
        assert since < begun < at < time.monotonic_ns()
    assert seen_fault(idle) is None


def test_errors_that_end_no_server_leave_no_word(
    make_member: MakeMember, make_container: Callable[..., Container]
) -> None:
    member = make_member()
    session = member.started()
    assert session(f"alloc({1 << 50})")[0] == OUT_OF_MEMORY
    assert seen_fault(member) is None
    alone = make_container()
    alone.limit(Limits((CardLimit(ANY_GPU, 64 * MIB, 10),), ComputePolicy.BURST))
    outside = alone.session()
    assert outside("start()") == 0
    illegal_access(outside)
    assert region.seen_fault((alone.folder / "region").read_bytes()) is None
