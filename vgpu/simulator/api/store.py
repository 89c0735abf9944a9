"""Objects with versions, and the log of their changes.

One counter stamps every change of every object, as etcd's revision does. Each resource keeps a log of its last changes:
a watch reads on in it from any version that is still there, and a list's later pages are the past of its first one,
found by undoing the log. What is older than the log is gone: `TooOld`.

Objects are never changed in place; who got one may keep it.
"""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final

from vgpu.errors import KubernetesError

Json = dict[str, Any]
ObjectKey = tuple[str, str]  # namespace (empty for cluster-scoped) and name
HISTORY: Final = 10_000


class TooOld(KubernetesError):
    """A version that the log no longer reaches back to, or that was never given out."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(410, "Expired", f"too old resource version: {version} ({oldest})")


@dataclass(frozen=True, slots=True)
class Change:
    """One write: an object before (None: created) and after (None: removed).

    `last` is what a watcher is shown: the new object, or the removed one stamped with the version of its removal.
    """

    version: int
    key: ObjectKey
    before: Json | None
    after: Json | None
    last: Json


@dataclass(slots=True)
class _Collection:
    """One resource's objects and the log of their changes."""

    objects: dict[ObjectKey, Json] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    floor: int = 0  # the log holds every change after this version
    latest: int = 0  # the version of the last change
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, change: Change, history: int) -> None:
        self.log.append(change)
        self.latest = change.version
        if len(self.log) > 2 * history:
            self.floor = self.log[history - 1].version
            del self.log[:history]
        self.changed.set()
        self.changed = asyncio.Event()


class Store:
    """All objects of a cluster."""

    def __init__(self, history: int = HISTORY) -> None:
        """`history` is how many changes of each resource are kept, at least."""
        self.version = 1
        self.closed = False
        self._history = history
        self._collections: dict[str, _Collection] = {}

    def get(self, resource: str, key: ObjectKey) -> Json | None:
        """Return an object, or None."""
        return self._collection(resource).objects.get(key)

    def objects(self, resource: str, namespace: str = "") -> list[Json]:
        """All objects of a resource, or of one namespace, ordered by namespace and name."""
        return _ordered(self._collection(resource).objects, namespace)

    def put(self, resource: str, key: ObjectKey, obj: Json) -> Json:
        """Write an object and return it as it now stands, with its new resourceVersion."""
        collection = self._collection(resource)
        stamped = self._stamp(obj)
        before = collection.objects.get(key)
        collection.objects[key] = stamped
        collection.append(Change(self.version, key, before, stamped, stamped), self._history)
        return stamped

    def remove(self, resource: str, key: ObjectKey) -> Json:
        """Remove an object that exists, and return it as it was last."""
        collection = self._collection(resource)
        before = collection.objects.pop(key)
        last = self._stamp(before)
        collection.append(Change(self.version, key, before, None, last), self._history)
        return last

    def at(self, resource: str, version: int, namespace: str = "") -> list[Json]:
        """Like `objects`, as it was at an earlier version.

        Raises:
            TooOld: nobody remembers.
        """
        objects = dict(self._collection(resource).objects)
        for change in reversed(self.since(resource, version)):
            if change.before is None:
                del objects[change.key]
            else:
                objects[change.key] = change.before
        return _ordered(objects, namespace)

    def since(self, resource: str, version: int) -> list[Change]:
        """Every change of a resource after `version`, oldest first.

        Raises:
            TooOld: some of them are forgotten, or `version` is of another life of this store.
        """
        collection = self._collection(resource)
        if version < collection.floor or version > self.version:
            raise TooOld(version, collection.floor)
        return collection.log[bisect_right(collection.log, version, key=lambda change: change.version) :]

    async def wait(self, resource: str, after: int, timeout_s: float) -> None:
        """Return once the resource has changed after a version, when the store is closed, or after a while."""
        collection = self._collection(resource)
        if collection.latest > after or self.closed:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await collection.changed.wait()
        except TimeoutError:
            return

    def forget(self) -> None:
        """Drop the whole log, as compaction does: every watch that is behind meets 410."""
        for collection in self._collections.values():
            collection.log.clear()
            collection.floor = self.version

    def close(self) -> None:
        """Let every watch end."""
        self.closed = True
        for collection in self._collections.values():
            collection.changed.set()

    def _collection(self, resource: str) -> _Collection:
        return self._collections.setdefault(resource, _Collection())

    def _stamp(self, obj: Json) -> Json:
        self.version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}


def _ordered(objects: dict[ObjectKey, Json], namespace: str) -> list[Json]:
    return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]
