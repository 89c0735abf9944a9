"""Which processes are MPS servers of groups in space, and which only say so."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.vgpu.node.builders import plain, uuid
from vgpu.adapters.procfs import HostProcess
from vgpu.domain.identifiers import Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.processes.group_servers import GroupServers
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

COMMAND = "nvidia-cuda-mps"  # as the kernel cuts it
OURS = Namespace("vgpu-system")
OF = GroupOnCard(uuid(0), "0123456789abcdef")
SUPERVISOR = replace(plain("vgpu-space"), namespace=OURS)
FOREIGN = plain("p")
ID = "0123456789abcdef" * 4


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory whose path is short, because the paths of sockets below it are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def cgroups(pod: BoundPod | None) -> str:
    return f"0::/kubepods/pod{pod.kubelet_uid}/{ID}\n" if pod else "0::/system.slice/x.service\n"


def write_process(proc: Path, pipe: Path, program: str = "/usr/bin/nvidia-cuda-mps-server") -> None:
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cmdline").write_text(f"{program}\0")
    (proc / "7" / "environ").write_text(f"CUDA_MPS_PIPE_DIRECTORY={pipe}\0")
    (proc / "7" / "stat").write_text(f"7 ({COMMAND}) S 6" + " 0" * 40)


@pytest.mark.parametrize(("pod", "expected"), [(None, OF), (SUPERVISOR, OF), (FOREIGN, None)])
def test_a_server_counts_outside_of_pods_and_in_our_own_namespace(
    state: Path, pod: BoundPod | None, expected: GroupOnCard | None
) -> None:
    write_process(state / "proc", SpaceDirectories(state / "space").pipe(OF))
    servers = GroupServers(state, OURS, state / "proc")
    pods = {pod.kubelet_uid: pod for pod in (SUPERVISOR, FOREIGN)}
    assert servers.group_of(7, HostProcess(COMMAND, cgroups(pod)), pods) == expected


def test_a_process_of_a_pod_that_is_not_known_is_none(state: Path) -> None:
    write_process(state / "proc", SpaceDirectories(state / "space").pipe(OF))
    servers = GroupServers(state, OURS, state / "proc")
    assert servers.group_of(7, HostProcess(COMMAND, cgroups(SUPERVISOR)), {}) is None


def test_servers_of_other_daemons_and_other_programs_are_none(state: Path) -> None:
    write_process(state / "a", state / "elsewhere" / "pipe")
    write_process(state / "b", SpaceDirectories(state / "space").pipe(OF), "/usr/bin/nvidia-cuda-mps-control -f")
    for proc in (state / "a", state / "b", state / "none"):
        assert GroupServers(state, OURS, proc).group_of(7, HostProcess(COMMAND, cgroups(None)), {}) is None


def test_members_are_those_that_the_files_name(state: Path) -> None:
    SpaceDirectories(state / "space").add_member(OF, "one")
    assert GroupServers(state, OURS).members(OF) == {"one"}
