"""The API server's verbs on a store. Every refusal is a `KubernetesError`, which becomes a Status object over HTTP.

A write is a loop of read, change, admit, write. Admission awaits, so the object is read again before the write, and the
loop starts over where it has changed (a write with a resourceVersion fails then).
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import objects, pods, resources, shapes
from vgpu.simulator.api.resources import EVENTS, PODS, Resource, Target
from vgpu.simulator.api.store import Store

MAX_EVENTS: Final = 1_000  # the API server keeps them for an hour


Warn = Callable[[str], None]  # is told what the client should read about a write that is carried out


def unread(_: str) -> None:
    """Leave out warnings, for a client that reads none."""


class Admission(Protocol):
    """Changes or refuses a write before it is stored."""

    async def admit(
        self, operation: str, target: Target, new: JsonObject | None, old: JsonObject | None, warn: Warn = unread
    ) -> JsonObject | None:
        """Return the object to store in place of `new`, or raise a KubernetesError with the reason."""


class InMemoryCluster:
    """An API server without HTTP."""

    def __init__(self, store: Store, admission: Admission, now: Callable[[], datetime], uid: Callable[[], str]) -> None:
        """`now` returns the time, `uid` a new UID, for the metadata of objects."""
        self.store = store
        self.now = now
        self._admission = admission
        self._uid = uid

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource, built in or defined by a CustomResourceDefinition; None where there is none."""
        known = [*resources.BUILTIN]
        if (crd := self.store.get(resources.CRDS.name, ("", f"{plural}.{group}"))) is not None:
            known += resources.defined(crd)
        return next((r for r in known if (r.group, r.version, r.plural) == (group, version, plural)), None)

    def find(self, target: Target) -> JsonObject | None:
        """Return an object, or None."""
        return self.store.get(target.resource.name, (target.namespace, target.name))

    def get(self, target: Target) -> JsonObject:
        """Return an object, or raise 404."""
        obj = self.find(target)
        if obj is None:
            raise KubernetesError(404, "NotFound", f'{target.resource.name} "{target.name}" not found')
        return obj

    async def create(self, target: Target, body: JsonObject, warn: Warn = unread) -> JsonObject:
        """Store a new object."""
        uid = self._uid()
        obj = objects.created(target.resource, target.namespace, body, uid=uid, now=self.now())
        target = Target(target.resource, target.namespace, obj["metadata"]["name"])
        admitted = await self._admission.admit("CREATE", target, obj, None, warn) or obj
        if self.find(target) is not None:
            raise KubernetesError(409, "AlreadyExists", f'{target.resource.name} "{target.name}" already exists')
        stored = self._put(target, admitted)
        if target.resource is EVENTS:
            self.store.keep(EVENTS.name, MAX_EVENTS)
        return stored

    async def update(self, target: Target, body: JsonObject) -> JsonObject:
        """Replace an object, or its status where the target says so."""
        return await self._change(target, lambda _: body)

    async def patch(self, target: Target, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Change an object by a function of its present version."""

        def versioned(old: JsonObject) -> JsonObject:
            new = shapes.object_of(change(old))
            shapes.check(target.resource, new)
            metadata = new.get("metadata") or {}
            return {**new, "metadata": {"resourceVersion": old["metadata"]["resourceVersion"], **metadata}}

        return await self._change(target, versioned)

    async def bind(self, target: Target, binding: JsonObject) -> None:
        """Bind a pod to a node."""
        shapes.check_binding(binding)
        await self._admission.admit("CREATE", target, binding, None)
        pod = self.get(target)
        wanted = binding.get("metadata") or {}
        objects.check_uid(PODS, pod["metadata"], wanted.get("uid"))
        self._put(target, pods.bound(pod, binding, now=self.now()))

    async def delete(self, target: Target, options: JsonObject) -> JsonObject:
        """Remove an object, or mark it where a kubelet or a finalizer must act first; return it as it is then."""
        shapes.check_deletion(options)
        old = self.get(target)
        await self._admission.admit("DELETE", target, None, old)
        old = self.get(target)
        objects.check_uid(target.resource, old["metadata"], (options.get("preconditions") or {}).get("uid"))
        asked = options.get("gracePeriodSeconds")
        grace = pods.grace_s(old, asked) if target.resource is PODS else 0
        if "deletionTimestamp" in old["metadata"] and not _shortens_grace(old["metadata"], grace):
            return old
        if grace or old["metadata"].get("finalizers"):
            return self._put(target, pods.deleting(old, grace, now=self.now()))
        return self.store.remove(target.resource.name, (target.namespace, target.name))

    async def _change(self, target: Target, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
        while True:
            old = self.get(target)
            new = objects.updated(target.resource, old, change(old), subresource=target.subresource)
            changed = await self._admission.admit("UPDATE", target, new, old) or new
            if self.get(target) is old:
                admitted = objects.admitted(target.resource, old, changed)
                return old if admitted == old else self._put(target, admitted)

    def _put(self, target: Target, obj: JsonObject) -> JsonObject:
        key = (target.namespace, target.name)
        if _is_released(obj["metadata"]):
            return self.store.remove(target.resource.name, key)
        return self.store.put(target.resource.name, key, obj)


def _shortens_grace(metadata: JsonObject, grace: int) -> bool:
    """Whether a second deletion has a shorter grace period than the first."""
    return grace < int(metadata["deletionGracePeriodSeconds"])


def _is_released(metadata: JsonObject) -> bool:
    """Whether an object is being deleted and waits for no kubelet or finalizer."""
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in metadata and not waits
