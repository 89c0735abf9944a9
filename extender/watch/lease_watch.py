"""Takes what the watches of Leases show."""

from typing import Final

from extender.effects.waker import Waker
from extender.state import objects as reading
from extender.state.leases import Leases
from extender.state.objects import WatchedLease
from extender.watch.watches import WatchedKind
from vgpu.domain import names
from vgpu.domain.identifiers import Namespace

LEASE_SILENCE_S: Final = 10.0  # the leading extender alone renews its Lease every 2 s
_LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class LeaseWatch:
    """Takes the Leases of our namespace: every device plugin's, and the extender's own."""

    def __init__(self, leases: Leases, waker: Waker, namespace: Namespace) -> None:
        path = _LEASES_PATH.format(namespace)
        self.kind = WatchedKind("leases", path, self, reading.lease, silence_s=LEASE_SILENCE_S, is_never_quiet=True)
        self._leases = leases
        self._waker = waker

    def replace(self, objects: list[WatchedLease], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        for name in set(self._leases.names()) - {lease.name for lease in objects}:
            self._leases.remove(name)
        for lease in objects:
            self.upsert(lease)

    def upsert(self, obj: WatchedLease) -> None:
        """Take a Lease that is new or changed."""
        was_fresh = self._leases.is_fresh(obj.name)
        self._leases.put(obj)
        if not was_fresh and (node := names.node_of_lease(obj.name)) and self._leases.is_fresh(obj.name):
            self._waker.changed(node)

    def delete(self, obj: WatchedLease) -> None:
        """Take a Lease's deletion."""
        self._leases.remove(obj.name)


class SchedulerLeaseWatch:
    """Takes the Lease of kube-schedulers in another namespace than ours, and no other object of that namespace.

    The account may read this one Lease only: the field selector is what RBAC compares with the name that it allows.
    Where the Lease cannot be read, the extender serves all the same, and does not lead.
    """

    def __init__(self, leases: Leases, namespace: Namespace, name: str) -> None:
        self.kind = WatchedKind(
            "scheduler-lease", _LEASES_PATH.format(namespace), self, reading.lease,
            silence_s=LEASE_SILENCE_S, params={"fieldSelector": f"metadata.name={name}"}, is_awaited=False,
        )  # fmt: skip
        self._leases = leases
        self._name = name

    def replace(self, objects: list[WatchedLease], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take the list: the Lease, or nothing."""
        if not objects:
            self._leases.remove(self._name)
        for lease in objects:
            self.upsert(lease)

    def upsert(self, obj: WatchedLease) -> None:
        """Take the Lease, new or changed."""
        self._leases.put(obj)

    def delete(self, obj: WatchedLease) -> None:
        """Take the Lease's deletion."""
        self._leases.remove(obj.name)
