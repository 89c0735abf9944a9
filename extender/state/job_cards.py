"""The cards of each job on a node that has shares of several: of a container, or of the pods of a gang together."""

from collections.abc import Iterable

from extender.state.gang_members import GangKey
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.placement import job_sets
from vgpu.placement.job_sets import CardSet

Held = tuple[PodUid, GangKey | None, Assignment]


class JobCards:
    """The jobs of one node, as its pods come and go. Most nodes have none: single pods of one card cost nothing."""

    def __init__(self) -> None:
        self._held: dict[PodUid, Held] = {}
        self._sets: tuple[CardSet, ...] | None = ()

    @property
    def sets(self) -> tuple[CardSet, ...]:
        """The cards of each job, each set once, in a fixed order."""
        if self._sets is None:
            self._sets = _sets(self._held.values())
        return self._sets

    def add(self, uid: PodUid, gang: GangKey | None, held: Assignment) -> None:
        """Take a pod that is bound."""
        if gang is not None or any(len(grants) > 1 for grants in held.containers.values()):
            self._held[uid] = uid, gang, held
            self._sets = None

    def remove(self, uid: PodUid) -> None:
        """Forget a pod that is no longer bound to the node."""
        if self._held.pop(uid, None) is not None:
            self._sets = None

    def with_reserved(self, reserved: Iterable[Held]) -> tuple[CardSet, ...]:
        """Return the cards of each job, with pods that are being bound."""
        more = [held for held in reserved if held[1] is not None or any(job_sets.of_assignment(held[2]))]
        return _sets([*self._held.values(), *more]) if more else self.sets


def _sets(held: Iterable[Held]) -> tuple[CardSet, ...]:
    found: set[CardSet] = set()
    gangs: dict[GangKey, set[CardUuid]] = {}
    for _, gang, assignment in held:
        if gang is None:
            found.update(job_sets.of_assignment(assignment))
        else:
            shares = (grant.gpu for grants in assignment.containers.values() for grant in grants if not grant.whole)
            gangs.setdefault(gang, set()).update(shares)
    found.update(frozenset(cards) for cards in gangs.values() if len(cards) > 1)
    return tuple(sorted(found, key=sorted))
