"""What the extender remembers of a gang beside its pods."""

from dataclasses import dataclass

from extender.gangs.plan import Plan


@dataclass(slots=True)
class Record:
    """A gang's memory. Times are monotonic, in seconds.

    Attributes:
        is_started: whether all members were bound at one time: then members are placed one by one, as other pods.
        was_complete: whether all members were present when the gang changed last.
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
    """

    is_started: bool = False
    was_complete: bool = False
    partial_since: float | None = None
    evict_at: float = 0.0
    plan: Plan | None = None
    failures: int = 0
    failure: str = ""
    retry_at: float = 0.0
    full_until: float = 0.0
    placed: int | None = None
    version: int = -1
    wake_at: float | None = None

    @property
    def state(self) -> str:
        """The gang's state in one word."""
        if self.is_started:
            return "started"
        if self.partial_since is not None:
            return "partial"
        return "planned" if self.plan is not None else "waiting"

    @property
    def is_timed(self) -> bool:
        """Whether something is to be done for the gang at a certain time."""
        is_bound_or_planned = self.plan is not None or self.partial_since is not None
        return is_bound_or_planned or self.retry_at > 0 or self.wake_at is not None

    def start(self) -> None:
        """Take that all members are bound."""
        self.is_started = True
        self.failures, self.failure, self.retry_at = 0, "", 0.0
        self.end_part()

    def end_part(self) -> None:
        """Take that no part of the gang is bound without the rest."""
        self.partial_since, self.evict_at = None, 0.0
