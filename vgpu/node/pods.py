"""The pods bound to this node, as the watch tells them: the Kubernetes side of identity."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from vgpu import names, quantity
from vgpu import request as requests
from vgpu.request import ContainerKind, Parsed

_MIRROR = "kubernetes.io/config.mirror"  # a static pod's shadow in the API
_TERMINAL = frozenset({"Succeeded", "Failed"})

_NOTHING_ASKED = Parsed(None)
_REMEMBERED = 1000

PodKey = tuple[str, str]  # namespace, name


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One container's demand as the kubelet sees it: so many IDs of one resource."""

    container: str
    kind: ContainerKind
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod of this node.

    Attributes:
        uid: identity; the rest may recur.
        namespace: of the pod.
        name: of the pod.
        wants: in the order in which the kubelet allocates.
        parsed: what it asks for, and what is wrong with that.
        assignment: the annotation, empty where there is none.
        is_admitted: the kubelet has admitted it (`status.startTime`).
        is_over: it has ended and holds nothing.
        is_mirror: it is a static pod, which nobody scheduled.
        has_controller: somebody would make another in its place.
        order: when it first came into the watch.
    """

    uid: str
    namespace: str
    name: str
    device_requests: tuple[DeviceRequest, ...] = ()
    parsed: Parsed = _NOTHING_ASKED
    assignment: str = ""
    is_admitted: bool = False
    is_terminal: bool = False
    is_mirror: bool = False
    has_controller: bool = False
    order: int = 0

    @property
    def key(self) -> PodKey:
        """Namespace and name, which is all that pod-resources tells."""
        return self.namespace, self.name


def decode(raw: bytes | msgspec.Raw) -> BoundPod:
    """Read a pod's JSON."""
    pod: Mapping[str, Any] = msgspec.json.decode(raw)
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    return BoundPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        device_requests=tuple(_wants(pod)),
        parsed=requests.parse(pod),
        assignment=annotations.get(names.ASSIGNMENT, ""),
        is_admitted="startTime" in status,
        is_terminal=status.get("phase") in _TERMINAL,
        is_mirror=_MIRROR in annotations,
        has_controller=any(owner.get("controller") for owner in metadata.get("ownerReferences") or ()),
    )


def _wants(pod: Mapping[str, Any]) -> Iterator[DeviceRequest]:
    for _, kind, container in requests.containers_of(pod):
        asked = requests.amounts(container)
        for resource in names.KUBELET_RESOURCES:
            amount = quantity.whole_number(asked.get(resource, "0"))
            if amount:
                yield DeviceRequest(container["name"], kind, resource, amount)


class Pods:
    """The reflector's handler: every pod of the node by UID, in the order of arrival."""

    def __init__(self) -> None:
        """`on_release` may be set: it is called when a pod that asked for devices is terminal or gone."""
        self.on_release: Callable[[], None] = lambda: None
        self._by_uid: dict[str, BoundPod] = {}
        self._ended: dict[PodKey, None] = {}
        self._arrivals = 0
        self._changed = asyncio.Condition()
        self._wakers: set[asyncio.Task[None]] = set()

    def replace(self, objects: list[BoundPod]) -> None:
        """Take these as all there are."""
        before, self._by_uid = self._by_uid, {}
        for pod in objects:
            self._keep(pod, before.get(pod.uid))
        if any(pod.device_requests for uid, pod in before.items() if uid not in self._by_uid):
            self.on_release()
        self._wake()

    def upsert(self, pod: BoundPod) -> None:
        """Take one that is new or changed."""
        known = self._by_uid.get(pod.uid)
        self._keep(pod, known)
        if pod.is_terminal and pod.device_requests and not (known and known.is_terminal):
            self.on_release()
        self._wake()

    def delete(self, pod: BoundPod) -> None:
        """Forget one."""
        self._by_uid.pop(pod.uid, None)
        if pod.device_requests:
            self.on_release()
        self._wake()

    def all(self) -> tuple[BoundPod, ...]:
        """Every pod, in the order of arrival."""
        return tuple(sorted(self._by_uid.values(), key=lambda pod: pod.order))

    def get(self, uid: str) -> BoundPod | None:
        """The pod with this UID."""
        return self._by_uid.get(uid)

    def named(self, key: PodKey) -> tuple[BoundPod, ...]:
        """Every pod of that name: more than one while a recreated pod's forerunner has not gone."""
        return tuple(pod for pod in self.all() if pod.key == key)

    def has_ended(self, key: PodKey) -> bool:
        """Whether the last pod of that name was over when it was seen last.

        A pod that goes the ordinary way is over before it is gone; one that was deleted by force may still run.
        """
        return key in self._ended

    async def wait_for_change(self, timeout: float) -> None:
        """Return after the next change, or after so many seconds."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait()
        except TimeoutError:
            return

    def _keep(self, pod: BoundPod, known: BoundPod | None) -> None:
        self._by_uid[pod.uid] = replace(pod, order=known.order if known else self._next())
        self._ended.pop(pod.key, None)
        if pod.is_terminal and all(each.is_terminal for each in self._by_uid.values() if each.key == pod.key):
            self._ended[pod.key] = None
            while len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]

    def _next(self) -> int:
        self._arrivals += 1
        return self._arrivals

    def _wake(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
