"""MPS: the daemon of a pipe directory, its server, and clients, which use the card at the same moment."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World
from tests.eventually import eventually
from tests.simgpu import mps_daemon
from tests.simgpu.mps_daemon import MpsDaemon

MIB = 1 << 20
OUT_OF_MEMORY, ILLEGAL_ADDRESS, RPC_FAILURE, NOT_READY, MAX_CLIENTS = 2, 700, 806, 807, 808
NOBODY = 65534
TIMED = pytest.mark.slow


MakeDaemon = Callable[..., MpsDaemon]


@pytest.fixture
def make_daemon(world: World, tmp_path: Path) -> Iterator[MakeDaemon]:
    yield lambda name="pipe": MpsDaemon(world, tmp_path / name)
    mps_daemon.end_all(world)


@pytest.fixture
def daemon(make_daemon: MakeDaemon) -> MpsDaemon:
    return make_daemon()


def attribute(session: ProbeSession, which: int) -> int:
    """A device's attribute: 133 is MPS_ENABLED, 16 the number of multiprocessors."""
    value: int = session(f"device_attribute({which})")
    return value


NVML = """
import json, pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
lists = {
    "compute": pynvml.nvmlDeviceGetComputeRunningProcesses(card),
    "mps": pynvml.nvmlDeviceGetMPSComputeRunningProcesses(card),
}
found = {name: {process.pid: process.usedGpuMemory for process in listed} for name, listed in lists.items()}
samples = pynvml.nvmlDeviceGetProcessUtilization(card, 0)
print(json.dumps({**found, "samples": {sample.pid: sample.smUtil for sample in samples}}))
"""


def nvml_of(world: World) -> dict[str, dict[int, int]]:
    """What NVML says of the first card: lists of processes with their bytes, and samples in percent."""
    done = subprocess.run([sys.executable, "-c", NVML], env=world.environment(), check=True, capture_output=True)
    lists = json.loads(done.stdout)
    return {name: {int(pid): number for pid, number in listed.items()} for name, listed in lists.items()}


def launched(session: ProbeSession, kernel: str) -> int:
    """The result of waiting for a kernel of that name."""
    session(f"kernels.launch(kernels.load({kernel!r}))")
    result: int = session("cuda.cuCtxSynchronize()")
    return result


def test_the_daemon_starts_its_server_for_the_first_client_and_lists_both(daemon: MpsDaemon) -> None:
    assert daemon.tell("get_server_list") == []
    client = daemon.client()
    assert daemon.clients() == {client.process.pid}
    assert attribute(client, 133) == 1
    (_, row) = daemon.tell("ps")
    assert row.split()[0] == str(client.process.pid)
    assert row.split()[2] == str(daemon.server())
    client.kill()
    assert daemon.clients() == set()


def test_an_administrator_may_start_the_server(daemon: MpsDaemon) -> None:
    assert daemon.tell("start_server -uid 0") == []
    first = daemon.server()
    daemon.client()
    assert daemon.server() == first
    assert daemon.tell("what") == ["Unknown command: what"]


def test_a_wrong_pipe_directory_is_no_error(daemon: MpsDaemon, tmp_path: Path) -> None:
    daemon.client()
    outside = daemon.world.session(CUDA_MPS_PIPE_DIRECTORY=str(tmp_path / "elsewhere"))
    assert outside("start()") == 0
    assert attribute(outside, 133) == 0
    assert outside.process.pid not in daemon.clients()


@pytest.mark.heavy
def test_percentages_are_the_lower_of_the_daemons_and_the_programs(daemon: MpsDaemon) -> None:
    assert attribute(daemon.client(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50"), 16) == 66
    daemon.tell("set_default_active_thread_percentage 25")
    assert daemon.tell("get_default_active_thread_percentage") == ["25.0"]
    assert attribute(daemon.client(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50"), 16) == 33
    assert attribute(daemon.client(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10"), 16) == 13
    assert attribute(daemon.client(), 16) == 33
    assert daemon.tell("set_default_active_thread_percentage 0") == ["Invalid percentage"]


def test_each_client_is_held_to_the_limit_of_pinned_memory(daemon: MpsDaemon) -> None:
    daemon.tell("set_default_device_pinned_mem_limit 0 100M")
    one, two = daemon.client(), daemon.client()
    for client in (one, two):
        assert client(f"fill_card({10 * MIB})") == 10
        assert client(f"alloc({MIB})")[0] == OUT_OF_MEMORY


@pytest.mark.heavy
def test_a_fault_ends_the_clients_of_its_server_only(make_daemon: MakeDaemon, world: World) -> None:
    ours, theirs = make_daemon("ours"), make_daemon("theirs")
    faulty, neighbour, other, outside = ours.client(), ours.client(), theirs.client(), world.session()
    assert outside("start()") == 0
    assert launched(faulty, "fault_10") == ILLEGAL_ADDRESS
    assert launched(neighbour, "spin_10") == ILLEGAL_ADDRESS
    assert neighbour(f"alloc({MIB})")[0] == ILLEGAL_ADDRESS
    assert [launched(session, "spin_10") for session in (other, outside)] == [0, 0]


def test_a_client_that_waits_for_its_work_is_woken_by_a_fault(daemon: MpsDaemon) -> None:
    faulty, waiting = daemon.client(), daemon.client()
    waiting("kernels.launch(kernels.load('spin_60000000'))")
    waiting.tell("cuda.cuCtxSynchronize()")
    launched(faulty, "fault_10")
    assert waiting.answer() == ILLEGAL_ADDRESS


@pytest.mark.heavy
def test_after_a_fault_new_clients_are_refused_until_those_before_it_have_ended(daemon: MpsDaemon) -> None:
    faulty, stopped = daemon.client(), daemon.client()
    stopped.process.send_signal(signal.SIGSTOP)
    launched(faulty, "fault_10")
    assert daemon.tell(f"get_server_status {daemon.server()}") == ["FAULT"]
    assert daemon.session()("cuda.cuInit(0)") == NOT_READY
    faulty.kill()
    assert daemon.session()("cuda.cuInit(0)") == NOT_READY
    stopped.kill()
    daemon.client()
    assert daemon.tell(f"get_server_status {daemon.server()}") == ["ACTIVE"]


def test_a_killed_client_harms_no_other(daemon: MpsDaemon) -> None:
    killed, other = daemon.client(), daemon.client()
    killed("kernels.launch(kernels.load('spin_60000000'))")
    other("kernels.launch(kernels.load('spin_100'))")
    killed.kill()
    assert other("cuda.cuCtxSynchronize()") == 0


def test_clients_fail_when_their_server_is_killed_and_a_new_server_serves_new_ones(daemon: MpsDaemon) -> None:
    before = daemon.client()
    first = daemon.server()
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while daemon.tell("get_server_list") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert launched(before, "spin_10") == RPC_FAILURE
    after = daemon.client()  # its server has the place of the former in the ledger
    assert launched(before, "spin_10") == RPC_FAILURE
    assert launched(after, "spin_10") == 0
    assert daemon.server() != first


def test_a_server_ends_with_its_daemon_and_another_daemon_serves_new_clients(daemon: MpsDaemon) -> None:
    before = daemon.client()
    server = daemon.server()
    daemon.process.kill()
    daemon.process.wait()
    eventually(lambda: not mps_daemon.is_running(server))
    assert launched(before, "spin_10") == RPC_FAILURE
    daemon.process = daemon.start()
    after = daemon.client()
    assert launched(before, "spin_10") == RPC_FAILURE
    assert launched(after, "spin_10") == 0
    assert daemon.clients() == {after.process.pid}


def test_another_user_may_ask_the_daemon_and_change_nothing(world: World) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # unlike the folders of tests, which other users cannot enter
        daemon = MpsDaemon(world, Path(folder) / "pipe")
        assert daemon.asked("get_server_list", user=NOBODY).returncode == 0
        for command in ("set_default_active_thread_percentage 7", "quit -t 0", "start_server -uid 0"):
            refused = daemon.asked(command, user=NOBODY)
            assert refused.stdout == f"Insufficient privileges for UID {NOBODY}\n"
        assert daemon.tell("get_default_active_thread_percentage") == ["100.0"]
        mps_daemon.end_all(world)


@pytest.mark.heavy
def test_nvml_lists_clients_and_server_and_only_the_server_has_samples(daemon: MpsDaemon, world: World) -> None:
    clients, outside = [daemon.client(), daemon.client()], world.session()
    assert outside("start()") == 0
    for session in (*clients, outside):
        assert session(f"alloc({MIB})")[0] == 0
        session("kernels.launch(kernels.load('spin_300000'))")
    pids, server = [session.process.pid for session in clients], daemon.server()
    found = nvml_of(world)
    assert found["compute"].keys() == {*pids, outside.process.pid, server}
    assert found["compute"][server] == 66 * MIB
    assert found["mps"] == {pid: found["compute"][pid] for pid in pids}
    assert found["samples"] == {outside.process.pid: 50, server: 50}


def test_a_directory_has_one_daemon(daemon: MpsDaemon) -> None:
    second = daemon.world.start(str(daemon.world.bin / "nvidia-cuda-mps-control"), "-f", **daemon.environment)
    assert second.wait(5) == 1
    daemon.client()


def test_a_49th_client_fails_in_cuinit(daemon: MpsDaemon) -> None:
    probe = str(daemon.world.bin / "gpuprobe")
    held = [daemon.world.start(probe, "--hold", "0", "alloc", "1", **daemon.environment) for _ in range(48)]
    for process in held:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["result"] == 0
    assert len(daemon.clients()) == 48
    last = daemon.session()
    assert last("cuda.cuInit(0)") == MAX_CLIENTS
    held[0].kill()
    held[0].wait()
    assert last("start()") == 0


def test_quit_waits_for_clients_and_serves_no_new_ones(daemon: MpsDaemon) -> None:
    client = daemon.client()
    daemon.tell("quit")
    assert daemon.session()("cuda.cuInit(0)") == NOT_READY
    assert launched(client, "spin_10") == 0
    client.kill()
    assert daemon.process.wait(5) == 0


@pytest.mark.heavy
def test_quit_with_a_time_limit_ends_the_server_of_a_client_that_never_exits(daemon: MpsDaemon) -> None:
    client = daemon.client()
    server = daemon.server()
    daemon.tell("quit -t 1")
    begun = time.monotonic()
    assert daemon.process.wait(5) == 0
    assert 0.5 < time.monotonic() - begun < 3
    assert not Path(f"/proc/{server}").exists()
    assert launched(client, "spin_10") == RPC_FAILURE


def slowdowns(clients: list[ProbeSession], kernel: str) -> list[float]:
    """How often longer a kernel of 0.3 s takes in each client, all at the same time, than it would take alone."""
    for client in clients:
        client.tell(f"launches.timed_launch(kernels.load('{kernel}_300000'))")
    return [client.answer() / 300 for client in clients]


@TIMED
def test_small_kernels_of_four_clients_run_at_the_same_moment(daemon: MpsDaemon) -> None:
    assert max(slowdowns([daemon.client() for _ in range(4)], "fill25")) < 1.05


@TIMED
def test_clients_whose_kernels_fill_the_card_divide_it(daemon: MpsDaemon) -> None:
    assert 1.7 < max(slowdowns([daemon.client(), daemon.client()], "spin")) < 2.1


@TIMED
def test_a_client_with_fewer_multiprocessors_takes_longer(daemon: MpsDaemon) -> None:
    capped = daemon.client(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25")
    assert 1.95 < slowdowns([capped], "fill50")[0] < 2.05
    assert slowdowns([capped, daemon.client()], "fill25")[0] < 1.05


@TIMED
def test_servers_take_time_slices(make_daemon: MakeDaemon) -> None:
    clients = [make_daemon(name).client() for name in ("one", "two")]
    assert 2.1 < max(slowdowns(clients, "fill25")) < 2.8
