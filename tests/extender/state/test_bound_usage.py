"""What bound pods take, added up pod by pod, equals what is added up from all pods at once."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.state import bound_usage
from extender.state.bound_usage import BoundUsage, NodeUsage
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import NO_USAGE, Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement import choose

NODES = {
    name: Node(name, 256, tuple(strategies.card(n, 8192) for n in range(2))) for name in map(NodeName, ("n1", "n2"))
}


def placed(obj: dict[str, object], uid: str) -> WatchedPod:
    """Return a pod with the assignment that it would get on an empty node."""
    pod = PodReader().decoded(obj)
    assert pod.parsed.request is not None
    state = strategies.node_state(*NODES[NodeName("n1")].cards)
    chosen = choose.place(pod.parsed.request, state, PackingPolicy.BINPACK)
    return (
        structs.replace(pod, uid=uid, assignment=chosen)
        if isinstance(chosen, Assignment)
        else structs.replace(pod, uid=uid)
    )


@given(st.data())
@settings(max_examples=60)
def test_pod_by_pod_equals_all_at_once(data: st.DataObject) -> None:
    bound, now = BoundUsage(), dict[str, WatchedPod]()
    pods = [placed(data.draw(strategies.share_pods()), f"u{n}") for n in range(3)]
    for _ in range(data.draw(st.integers(1, 12))):
        pod = data.draw(st.sampled_from(pods))
        before = now.get(pod.uid)
        node, ended = data.draw(st.sampled_from(["", "n1", "n2"])), data.draw(st.booleans())
        after = data.draw(st.sampled_from([None, structs.replace(pod, node=node, is_terminal=ended)]))
        if after is None:
            now.pop(pod.uid, None)
        else:
            now[pod.uid] = after
        if after is None or not bound_usage.holds_alike(before, after):
            bound.change(before, after)
        for name, node_now in NODES.items() if data.draw(st.booleans()) else ():
            running = [pod for pod in now.values() if pod.node == name and not pod.is_terminal]
            assert plain(bound.on(node_now, running)) == plain(BoundUsage().on(node_now, running))


def test_a_change_of_the_slice_size_adds_up_again() -> None:
    pod = structs.replace(placed(strategies.pod(strategies.container(gpu_mem=1024)), "u"), node="n1")
    bound = BoundUsage()
    assert bound.on(NODES[NodeName("n1")], [pod]).cards[CardUuid("GPU-0")].slices == 4
    assert bound.on(replace(NODES[NodeName("n1")], slice_mib=512), [pod]).cards[CardUuid("GPU-0")].slices == 2


def plain(found: NodeUsage) -> tuple[dict[CardUuid, Usage], dict[str, int]]:
    """Return the figures that are not zero."""
    cards = {card: taken for card, taken in found.cards.items() if taken != NO_USAGE}
    return cards, {name: amount for name, amount in found.devices.items() if amount}
