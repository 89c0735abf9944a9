"""What the extender remembers of a gang beside its pods."""

from dataclasses import dataclass

from extender.gangs.plan import GangPlan
from vgpu.domain.identifiers import NodeName


@dataclass(slots=True)
class GangProgress:
    """How far a gang has come. Times are monotonic, in seconds.

    Attributes:
        is_started: whether all members were bound at one time: then members are placed one by one, as other pods.
        was_complete: whether all members were present when the gang changed last.
        was_sized: whether its size was known then.
        partial_since: since when some members are bound, and others are not, before the gang has started.
        evict_at: when the bound members are evicted next.
        plan: the current plan.
        failures: attempts that missed their deadline, one after the other.
        failure: what the last attempt lacked.
        retry_at: before this time no plan is made.
        full_until: before this time the cards are not looked at again, because they did not suffice.
        placed: how many members the free cards took then; None where they were not looked at, or sufficed.
        version: of the index then.
        wake_at: when members are woken because the cards were not looked at for them.
        waits_since: since when all members exist and no plan could be made.
        offered: the nodes that kube-scheduler has offered for any member since then.
        holds: how often room was kept free for the gang in vain.
        hold_at: before this time no room is kept free for it again.
        held: the room that is kept free, or why none is, in words.
        impossible_since_ms: when it was found that the gang does not fit the cards that exist, Unix milliseconds; 0:
            it was not.
    """

    is_started: bool = False
    was_complete: bool = False
    was_sized: bool = False
    partial_since: float | None = None
    evict_at: float = 0.0
    plan: GangPlan | None = None
    failures: int = 0
    failure: str = ""
    retry_at: float = 0.0
    full_until: float = 0.0
    placed: int | None = None
    version: int = -1
    wake_at: float | None = None
    waits_since: float | None = None
    offered: frozenset[NodeName] = frozenset()
    holds: int = 0
    hold_at: float = 0.0
    held: str = ""
    impossible_since_ms: int = 0

    @property
    def phase(self) -> str:
        """The gang's phase in one word."""
        if self.is_started:
            return "started"
        if self.partial_since is not None:
            return "partial"
        return "planned" if self.plan is not None and self.plan.is_made else "waiting"

    @property
    def is_timed(self) -> bool:
        """Whether something is to be done for the gang at a certain time."""
        is_bound_or_planned = self.plan is not None or self.partial_since is not None
        return is_bound_or_planned or self.retry_at > 0 or self.wake_at is not None

    def wait(self, now: float) -> None:
        """Take that all members exist, and have no plan."""
        if self.waits_since is None:
            self.waits_since = now

    def end_wait(self) -> None:
        """Take that the gang is planned, has started, or lacks members."""
        self.waits_since, self.offered = None, frozenset()
        self.holds, self.hold_at, self.held, self.impossible_since_ms = 0, 0.0, "", 0

    def start(self) -> None:
        """Take that all members are bound."""
        self.is_started = True
        self.failures, self.failure, self.retry_at = 0, "", 0.0
        self.end_part()

    def end_part(self) -> None:
        """Take that no part of the gang is bound without the rest."""
        self.partial_since, self.evict_at = None, 0.0
