"""Ordered lists of the cluster's objects, kept between requests: a page costs its rows, and no list is sorted again.

A list belongs to a query without its cursor. With a new snapshot the filters and sort keys of changed objects only are
computed, in slices of time with pauses, because every computation delays other requests. Which
namespaces a caller may see is applied to the page. Rows of pods are encoded once for each version.

Callers have equal parts of what is kept, and turns at making lists: a caller that asks for many lists displaces no list
of another caller, and delays it by one list.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.admin.answers import paging, rows
from extender.admin.answers.listed import pods
from extender.admin.answers.paging import Key, ListKind, ListRequest, RowPage
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.security.caller_turns import CallerTurns
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.identifiers import PodUid
from vgpu.pacing.fair_cache import FairCache

T = TypeVar("T")

MAX_LISTS: Final = 6  # that are kept, the latest used; 160,000 objects take 40 MB in each
MADE_AT_ONCE: Final = 2
MOST_WAITING: Final = 1_024
MOST_OF_CALLER: Final = 64
SLICE: Final = 128  # objects between two pauses: less than a millisecond
PAUSE_S: Final = 0.002

Sees = Callable[[T], bool]


class OrderedList(Generic[T]):
    """The objects that pass a query's filters, in its order."""

    def __init__(self, wanted: ListRequest, keeps: Callable[[T], bool], pause: Callable[[], Awaitable[None]]) -> None:
        self._wanted = wanted
        self._keeps = keeps
        self._pause = pause
        self._known: dict[Hashable, tuple[T, Key | None]] = {}
        self._order: list[Hashable] = []
        self._number = -1
        self._lock = asyncio.Lock()

    async def page(
        self, number: int, objects: Iterable[T], asked: ListRequest, kind: ListKind[T], sees: Sees[T]
    ) -> RowPage:
        """Return a page of the objects of snapshot `number`. Raises AdminProblem for a cursor of another query."""
        async with self._lock:
            if number > self._number:
                await self._update(objects, kind)
                self._number = number
            known = self._known
            start = paging.after_cursor(self._order, asked, lambda name: known[name][1] or ())
            later = (known[name][0] for name in self._order[start:])
            return paging.page((item for item in later if sees(item)), asked, kind)

    async def _update(self, objects: Iterable[T], kind: ListKind[T]) -> None:
        key, fresh = paging.sort_key(self._wanted, kind), dict[Hashable, tuple[T, Key | None]]()
        changed: list[Hashable] = []
        for count, obj in enumerate(objects, 1):
            name = kind.name(obj)
            old = self._known.get(name)
            if old is not None and kind.same(old[0], obj):
                fresh[name] = old  # no new tuple: 10,000 of them twice a second make the collector look at everything
            else:
                is_listed = self._keeps(obj) and paging.matches(self._wanted, obj, kind)
                fresh[name] = (obj, key(obj) if is_listed else None)
                changed.append(name)
            if count % (SLICE if changed else 8 * SLICE) == 0:
                await self._pause()
        if changed or len(fresh) != len(self._known):
            self._order = _merged(self._order, changed, fresh)
        self._known = fresh


def _merged(
    order: list[Hashable], changed: list[Hashable], fresh: dict[Hashable, tuple[Any, Key | None]]
) -> list[Hashable]:
    """Return the names in order: sorting what is sorted but for its end costs little."""
    moved = set(changed)
    kept = [name for name in order if name in fresh and name not in moved]
    return sorted(
        [*kept, *(name for name in changed if fresh[name][1] is not None)], key=lambda name: fresh[name][1] or ()
    )


class ListCache:
    """The lists of one event loop. `sleep` waits some seconds."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._lists = FairCache[str, tuple[str, str], OrderedList[Any]](MAX_LISTS)
        self._turns = CallerTurns(MADE_AT_ONCE, MOST_WAITING, MOST_OF_CALLER)
        self._pods: dict[PodUid, tuple[WatchedPod, GpuNode | None, str, bytes]] = {}

    async def page(
        self,
        what: str,
        snapshot: ClusterSnapshot,
        objects: Iterable[T],
        asked: ListRequest,
        kind: ListKind[T],
        *,
        caller: str,
        keeps: Callable[[T], bool] = lambda _: True,
        sees: Sees[T] = lambda _: True,
    ) -> RowPage:
        """Return a page.

        Args:
            what: names the list of objects, with `keeps`.
            snapshot: the cluster now.
            objects: all objects of it.
            asked: the query.
            kind: how these objects are listed.
            caller: whose parts and turns count.
            keeps: whether an object belongs to the list; a pure function of the object and the query.
            sees: whether the caller may see an object.

        Raises:
            AdminProblem: an unknown field, a cursor of another query, or too many lists of the caller are being made.
        """
        paging.check(asked, kind)
        name = (what, asked.digest)
        kept = self._lists.get(name)
        if kept is not None:
            self._lists.put(caller, name, kept)
            return await kept.page(snapshot.number, objects, asked, kind, sees)
        async with self._turns.turn(caller):
            kept = self._lists.get(name) or OrderedList(asked, keeps, self._pause)
            self._lists.put(caller, name, kept)
            return await kept.page(snapshot.number, objects, asked, kind, sees)

    def pod_row(self, pod: WatchedPod, snapshot: ClusterSnapshot) -> bytes:
        """Return a pod's encoded row, made once for each version of the pod, its GPUNode and the age of that."""
        gpunode, silent = snapshot.gpunodes.get(pod.node), rows.silent_since(pod, snapshot)
        known = self._pods.get(pod.uid)
        if known is not None and known[0] is pod and known[1] is gpunode and known[2] == silent:
            return known[3]
        if len(self._pods) > 2 * len(snapshot.pods):
            self._pods = {uid: entry for uid, entry in self._pods.items() if uid in snapshot.pods}
        encoded = msgspec.json.encode(pods.row(pod, snapshot))
        self._pods[pod.uid] = (pod, gpunode, silent, encoded)
        return encoded

    async def _pause(self) -> None:
        await self._sleep(PAUSE_S)
