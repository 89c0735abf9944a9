"""Which container a process on a card belongs to."""

from vgpu.adapters.procfs import HostProcess
from vgpu.domain.identifiers import CardUuid, ContainerName, KubeletPodUid, Namespace, PodUid
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.usage import process_owner

ID = "a" * 64
PODS = {
    KubeletPodUid("uid-1"): BoundPod(
        PodUid("uid-1"), Namespace("default"), "nb", containers=((ID, ContainerName("main")),)
    )
}
PROCESSES = {
    1: HostProcess("python", f"0::/kubepods/burstable/poduid-1/{ID}"),
    2: HostProcess("Xorg", "0::/system.slice/display.service"),
    3: HostProcess("python", f"0::/kubepods/burstable/poduid-1/{'b' * 64}"),
    4: HostProcess("python", f"0::/kubepods/burstable/poduid-2/{ID}"),
}


def test_owners_host_processes_and_what_is_not_known_yet() -> None:
    found = process_owner.owners([(CardUuid("GPU-0"), pid) for pid in (1, 2, 3, 4, 5)], PROCESSES.get, PODS)
    assert found == {("GPU-0", 1): ("uid-1", "main", "GPU-0"), ("GPU-0", 2): None}
