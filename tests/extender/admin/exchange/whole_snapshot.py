"""The slow twin of the pieces: a snapshot that is made of all objects at once."""

from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.state.cluster import Cluster
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.asks import node_rules
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement.snapshot import NodeView


def whole(world: World, like: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot of all objects as they are now; the number and the policies are those of `like`."""
    cluster = world.cluster
    cluster.states.expire()
    return ClusterSnapshot(
        like.number,
        dict(cluster.objects.pods),
        dict(cluster.objects.gpunodes),
        {name: view(cluster, name) for name in cluster.objects.gpunodes},
        cluster.slice_mib,
        world.seen.decisions.known(),
        world.leader.refusal(),
        like.policies,
        held=cluster.holds.now,
        impossible_gangs=dict(world.seen.gangs.known.impossible()),
    )


def view(cluster: Cluster, name: NodeName) -> NodeView:
    """Return what placement sees of a node now."""
    kubelet, usable = cluster.objects.nodes.get(name), cluster.states.usable(name)
    return NodeView(
        name,
        cluster.states.of(name),
        None if isinstance(usable, NodeState) else usable,
        kubelet.allocatable if kubelet else {},
        cluster.leases.silent_since(names.node_lease(name)),
        kubelet.marks if kubelet else node_rules.NO_MARKS,
    )
