"""The pods of each gang, as the watch shows them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from extender.state.objects import WatchedPod
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.identifiers import Namespace, PodUid

GangKey = tuple[Namespace, GangSource, str]  # namespace, what names the gang, name

_NOBODY: Final[Mapping[PodUid, WatchedPod]] = {}


def key_of(pod: WatchedPod) -> GangKey | None:
    """Return the key of a pod's gang, None where it is in no gang."""
    gang = pod.parsed.gang
    return (pod.namespace, gang.source, gang.name) if gang is not None else None


def kind_of(key: GangKey) -> str:
    """Return what people call the gang: `gang` of an annotation, or `PodGroup`."""
    return "gang" if key[1] is GangSource.ANNOTATION else "PodGroup"


def keys_of(pods: Iterable[WatchedPod]) -> list[GangKey]:
    """Return the keys of the gangs of some pods, each once."""
    return list(dict.fromkeys(key for pod in pods if (key := key_of(pod)) is not None))


class GangMembers:
    """Every pod that names a gang, by gang and UID."""

    def __init__(self) -> None:
        self._by_gang: dict[GangKey, dict[PodUid, WatchedPod]] = {}
        self._keys: dict[PodUid, GangKey] = {}
        self._changed: Callable[[GangKey], None] = lambda _: None

    def listen(self, changed: Callable[[GangKey], None]) -> None:
        """Call `changed` with the key of each gang of which a member is new, changed or gone."""
        self._changed = changed

    def put(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        before, key = self._keys.get(pod.uid), key_of(pod)
        if before is not None and before != key:
            self.remove(pod.uid)
        if key is not None:
            self._keys[pod.uid] = key
            self._by_gang.setdefault(key, {})[pod.uid] = pod
            self._changed(key)

    def remove(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        key = self._keys.pop(uid, None)
        if key is None:
            return
        del self._by_gang[key][uid]
        if not self._by_gang[key]:
            del self._by_gang[key]
        self._changed(key)

    def of(self, key: GangKey) -> Mapping[PodUid, WatchedPod]:
        """Return a gang's pods by UID."""
        return self._by_gang.get(key, _NOBODY)

    def of_pod(self, pod: WatchedPod) -> Collection[WatchedPod]:
        """Return the pods of a pod's gang, the pod among them; none where it is in no gang."""
        key = key_of(pod)
        return self.of(key).values() if key is not None else ()

    @property
    def keys(self) -> Collection[GangKey]:
        """The keys of all gangs."""
        return self._by_gang.keys()
