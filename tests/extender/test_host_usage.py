"""What pods request of a node's CPU and memory."""

from extender.host_usage import HostPod, HostUsage
from vgpu import host_request
from vgpu.host_request import HostRequest
from vgpu.share import HostRoom


def test_pods_without_requests_come_and_go() -> None:
    usage, allocatable = HostUsage(), HostRequest(4000, 4096)
    for uid, request in (("a", host_request.NOTHING), ("b", host_request.NOTHING), ("c", HostRequest(1000, 1024))):
        list(usage.put(HostPod(uid, "n1", request)))
    assert usage.room("n1", allocatable) == HostRoom(3000, 3072)
    for uid in ("c", "a", "b"):
        list(usage.remove(uid))
    assert usage.room("n1", allocatable) == HostRoom(4000, 4096)
