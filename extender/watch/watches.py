"""The watches of the API server: a reflector for each kind of objects that the extender looks at."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from vgpu.adapters.kubernetes import reflector
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import ObjectHandler, Reflector

ABSENT_S: Final = 30.0  # a kind that the API server does not know may be installed while the extender runs


class Synced(Protocol):
    """Says whether the cluster's state is complete."""

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list."""


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind of objects, and what takes them.

    Attributes:
        name: in the metrics.
        path: of the objects.
        handler: takes the objects.
        decode: makes an object of its JSON.
        silence_s: after which a watch without a byte is a failed connection.
        is_optional: whether the API server may not know the kind. Nothing waits for the first list then.
        is_never_quiet: whether some object changes every few seconds, so that silence alone makes what is shown old.
        params: of the requests, such as a field selector.
        is_awaited: whether no verb may answer before the first list.
    """

    name: str
    path: str
    handler: ObjectHandler
    decode: Callable[[bytes], Any]
    silence_s: float = reflector.SILENCE_S
    is_optional: bool = False
    is_never_quiet: bool = False
    params: Mapping[str, str] = field(default_factory=dict)
    is_awaited: bool = True


class Watches:
    """The reflectors of some kinds, by name. `jitter` returns a random number from 0 to 1."""

    def __init__(self, client: KubernetesClient, jitter: Callable[[], float], kinds: Iterable[WatchedKind]) -> None:
        self.by_name: dict[str, Reflector] = {}
        self._needed: list[Reflector] = []
        for kind in kinds:
            absent_s = ABSENT_S if kind.is_optional else None
            watch = self.by_name[kind.name] = Reflector(
                client, kind.path, kind.handler,
                jitter=jitter, decode=kind.decode, silence_s=kind.silence_s, absent_s=absent_s,
                is_never_quiet=kind.is_never_quiet, params=kind.params,
            )  # fmt: skip
            if kind.is_awaited and not kind.is_optional:
                self._needed.append(watch)

    @property
    def pods(self) -> Reflector:
        """The watch of pods."""
        return self.by_name["pods"]

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list: before that no verb may answer.

        Left out are the watches of optional kinds, PodGroups, for which only members of such gangs wait, and the watch
        of a Lease in another namespace, without which this replica does not lead.
        """
        return all(watch.synced.is_set() for watch in self._needed)

    async def wait(self) -> None:
        """Return when every watch has had its first list."""
        if self.is_synced:
            return
        await asyncio.gather(*(watch.synced.wait() for watch in self._needed))

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self.by_name.values():
                group.create_task(watch.run())
