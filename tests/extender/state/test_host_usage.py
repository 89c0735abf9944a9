"""What pods request of a node's CPU and memory."""

from extender.state.host_usage import HostPod, HostUsage
from vgpu.domain.asks import host_request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.cards.share import HostRoom
from vgpu.domain.identifiers import NodeName, PodUid

N1 = NodeName("n1")


def test_the_sums_of_nodes_that_are_empty_are_forgotten() -> None:
    usage = HostUsage()
    assert list(usage.put(HostPod(PodUid("a"), N1, HostRequest(100, 1)))) == ["n1"]
    assert list(usage.put(HostPod(PodUid("a"), NodeName("n2"), HostRequest(100, 1)))) == ["n1", "n2"]
    assert list(usage.retain([])) == ["n2"]
    assert not usage._nodes


def test_pods_that_request_nothing_come_and_go_and_change_no_node() -> None:
    usage, allocatable = HostUsage(), HostRequest(4000, 4096)
    pods = {"a": host_request.NOTHING, "b": host_request.NOTHING, "c": HostRequest(1000, 1024)}
    assert [list(usage.put(HostPod(PodUid(uid), N1, request))) for uid, request in pods.items()] == [[], [], ["n1"]]
    assert usage.room(N1, allocatable) == HostRoom(3000, 3072)
    assert list(usage.put(HostPod(PodUid("c"), N1, host_request.NOTHING))) == ["n1"]
    assert [list(usage.remove(PodUid(uid))) for uid in ("a", "c", "b", "a")] == [[], [], [], []]
    assert usage.room(N1, allocatable) == HostRoom(4000, 4096)
    assert not usage._nodes
