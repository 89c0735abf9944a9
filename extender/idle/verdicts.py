"""What the last report of each pod led to. Times are monotonic ns."""

from dataclasses import dataclass
from typing import Final

from vgpu.domain.asks.idle import IdleVerdict, Rule
from vgpu.domain.identifiers import PodUid

_SLACK_NS: Final = 30_000_000_000


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """A pod's last report: when it came, how long after the one before, and what follows.

    `used_ns` is when the pod itself used a card last; None where that is unknown.
    """

    at_ns: int
    period_ns: int
    rule: Rule | None
    verdict: IdleVerdict
    used_ns: int | None = None

    def is_fresh(self, now_ns: int) -> bool:
        """Whether no later report is overdue."""
        return now_ns - self.at_ns <= 2 * self.period_ns + _SLACK_NS


class Verdicts:
    """The last verdict about each pod, by UID."""

    def __init__(self) -> None:
        self._by_uid: dict[PodUid, JudgedReport] = {}

    def put(
        self, uid: PodUid, now_ns: int, *, rule: Rule | None, verdict: IdleVerdict, used_ns: int | None = None
    ) -> None:
        """Take the verdict about a report that came now."""
        before = self._by_uid.get(uid)
        period_ns = now_ns - before.at_ns if before else 0
        self._by_uid[uid] = JudgedReport(now_ns, period_ns, rule, verdict, used_ns)

    def calls_for_action(self, uid: PodUid, rule: Rule, now_ns: int) -> bool:
        """Whether a pod's last report calls for the action of a rule, and no later one is overdue."""
        found = self._by_uid.get(uid)
        if found is None or found.verdict is not IdleVerdict.ACT or found.rule is None:
            return False
        return found.is_fresh(now_ns) and found.rule.action is rule.action

    def used_ns(self, uid: PodUid, now_ns: int) -> int | None:
        """Return when a pod used a card last; None where its last report does not say it, or a later one is overdue."""
        found = self._by_uid.get(uid)
        return found.used_ns if found is not None and found.is_fresh(now_ns) else None

    def forget(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        self._by_uid.pop(uid, None)
