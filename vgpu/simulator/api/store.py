"""Objects with versions, and the log of their changes.

One counter numbers every change of every object, like etcd's revision. Each resource has a log of its last changes: a
watch continues from any version in the log, and the later pages of a list show the version of the first page, computed
by undoing the log. Older versions raise `TooOld`.

Objects are never changed in place, so callers may keep them.
"""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject

ObjectKey = tuple[str, str]  # namespace (empty for cluster-scoped) and name
HISTORY: Final = 10_000


class TooOld(KubernetesError):
    """A version that is older than the log, or newer than the last change."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(410, "Expired", f"too old resource version: {version} ({oldest})")


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One write: an object before (None: created) and after (None: removed).

    `last` is what watches show: the new object, or the removed one with the version of its removal.
    """

    version: int
    key: ObjectKey
    before: JsonObject | None
    after: JsonObject | None
    last: JsonObject


@dataclass(slots=True)
class _Collection:
    """One resource's objects and the log of their changes."""

    objects: dict[ObjectKey, JsonObject] = field(default_factory=dict)
    log: list[ObjectChange] = field(default_factory=list)
    floor: int = 0  # the log holds every change after this version
    latest: int = 0  # the version of the last change
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ordered: list[JsonObject] | None = None  # the objects by key, until the next change: a list has many pages

    def append(self, change: ObjectChange, history: int) -> None:
        self.log.append(change)
        self.ordered = None
        self.latest = change.version
        if len(self.log) > 2 * history:
            self.floor = self.log[history - 1].version
            del self.log[:history]
        self.changed.set()
        self.changed = asyncio.Event()


class Store:
    """All objects of a cluster."""

    def __init__(self, history: int = HISTORY) -> None:
        """`history` is the number of changes of each resource that are kept at least."""
        self.version = 1
        self.closed = False
        self._history = history
        self._collections: dict[str, _Collection] = {}

    def get(self, resource: str, key: ObjectKey) -> JsonObject | None:
        """Return an object, or None."""
        return self._collection(resource).objects.get(key)

    def objects(self, resource: str, namespace: str = "") -> list[JsonObject]:
        """Return all objects of a resource, or of one namespace, ordered by both names. Do not change it."""
        collection = self._collection(resource)
        if namespace:
            return _ordered(collection.objects, namespace)
        if collection.ordered is None:
            collection.ordered = _ordered(collection.objects, "")
        return collection.ordered

    def put(self, resource: str, key: ObjectKey, obj: JsonObject) -> JsonObject:
        """Write an object and return it with its new resourceVersion."""
        collection = self._collection(resource)
        stamped = self._stamp(obj)
        before = collection.objects.get(key)
        collection.objects[key] = stamped
        collection.append(ObjectChange(self.version, key, before, stamped, stamped), self._history)
        return stamped

    def remove(self, resource: str, key: ObjectKey) -> JsonObject:
        """Remove an object that exists, and return its last version."""
        collection = self._collection(resource)
        before = collection.objects.pop(key)
        last = self._stamp(before)
        collection.append(ObjectChange(self.version, key, before, None, last), self._history)
        return last

    def keep(self, resource: str, most: int) -> None:
        """Remove the objects of a resource that were created first, until at most `most` are left."""
        objects = self._collection(resource).objects
        while len(objects) > most:
            self.remove(resource, next(iter(objects)))

    def at(self, resource: str, version: int, namespace: str = "") -> list[JsonObject]:
        """Return what `objects` returned at an earlier version.

        Raises:
            TooOld: the version is not in the log.
        """
        later = self.since(resource, version)
        if not later:
            return self.objects(resource, namespace)
        objects = dict(self._collection(resource).objects)
        for change in reversed(later):
            if change.before is None:
                del objects[change.key]
            else:
                objects[change.key] = change.before
        return _ordered(objects, namespace)

    def since(self, resource: str, version: int) -> list[ObjectChange]:
        """Return every change of a resource after `version`, oldest first.

        Raises:
            TooOld: some of the changes are not in the log any more, or `version` is of another store.
        """
        collection = self._collection(resource)
        if version < collection.floor or version > self.version:
            raise TooOld(version, collection.floor)
        return collection.log[bisect_right(collection.log, version, key=lambda change: change.version) :]

    async def wait(self, resource: str, after: int, timeout_s: float) -> None:
        """Return when the resource has changed after a version, the store is closed, or the timeout is over."""
        collection = self._collection(resource)
        if collection.latest > after or self.closed:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await collection.changed.wait()
        except TimeoutError:
            return

    def forget(self) -> None:
        """Drop the whole log, as compaction does: watches that lag get 410."""
        for collection in self._collections.values():
            collection.log.clear()
            collection.floor = self.version

    def close(self) -> None:
        """End every watch."""
        self.closed = True
        for collection in self._collections.values():
            collection.changed.set()

    def _collection(self, resource: str) -> _Collection:
        return self._collections.setdefault(resource, _Collection())

    def _stamp(self, obj: JsonObject) -> JsonObject:
        self.version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}


def _ordered(objects: dict[ObjectKey, JsonObject], namespace: str) -> list[JsonObject]:
    return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]
