"""What is done about a container that holds cards and does not use them: the annotations, and the decision. Pure.

Use is a kernel of the container itself, unless its pod is a synthetic load; CPU time and the utilization of the whole
card, which others use, say nothing. Where it is not known for how long a container has been idle, nothing is done. A
warning precedes every action by at least the grace time, and any use after the warning makes it void.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vgpu.domain import names
from vgpu.domain.problem import Problem

NEVER: Final = "never"

_DURATION: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)
_LEAST_S: Final = 60
_MOST_S: Final = 30 * 24 * 3600
_NS: Final = 1_000_000_000


class IdleAction(StrEnum):
    """What is done with an idle pod."""

    REPORT = "report"
    EVICT = "evict"
    SCALE_TO_ZERO = "scale-to-zero"
    CULL = "cull"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a pod or a namespace says by annotation; None where it says nothing.

    Attributes:
        after_s: seconds without use after which a pod is idle; 0 for never.
        action: what is done then.
        is_readable: False where an annotation has a wrong value: then nothing is done.
    """

    after_s: int | None = None
    action: IdleAction | None = None
    is_readable: bool = True


NOTHING_SET: Final = Setting()


@dataclass(frozen=True, slots=True)
class Rule:
    """When a pod is idle, and what is done then."""

    after_s: int
    action: IdleAction

    def __str__(self) -> str:
        return f"{self.action} after {duration_text(self.after_s)}"


class IdleVerdict(StrEnum):
    """What to do now."""

    NOTHING = "nothing"
    REPORT = "report"
    WARN = "warn"
    ACT = "act"


@dataclass(frozen=True, slots=True)
class IdlePodUse:
    """What is known of a pod, by one monotonic clock in ns.

    Attributes:
        last_ns: the last use of any of its cards, or its start where it has used none; None where that is unknown.
        warned_ns: when it was warned; None for never.
    """

    last_ns: int | None
    warned_ns: int | None = None


def read(annotations: Mapping[str, str]) -> tuple[Setting, list[Problem]]:
    """Read the annotations of a pod or of a namespace; each one with a wrong value is a problem."""
    if names.IDLE_AFTER not in annotations and names.IDLE_ACTION not in annotations:
        return NOTHING_SET, []
    problems: list[Problem] = []
    after, action = annotations.get(names.IDLE_AFTER), annotations.get(names.IDLE_ACTION)
    after_s = None if after is None else seconds_of(after)
    if after is not None and after_s is None:
        why = f"must be a time from 1m to 720h, such as 30m or 1h30m, or {NEVER}"
        problems.append(Problem(_field(names.IDLE_AFTER), after, why))
    if action is not None and action not in set(IdleAction):
        why = f"must be one of {', '.join(IdleAction)}"
        problems.append(Problem(_field(names.IDLE_ACTION), action, why))
    known = IdleAction(action) if action in set(IdleAction) else None
    return Setting(after_s, known, is_readable=not problems), problems


def rule(pod: Setting, namespace: Setting) -> Rule | None:
    """Return the rule of a pod; None for no rule. What the pod says precedes what its namespace says."""
    if not pod.is_readable:
        return None
    after_s = pod.after_s if pod.after_s is not None or not namespace.is_readable else namespace.after_s
    action = pod.action or (namespace.action if namespace.is_readable else None) or IdleAction.REPORT
    return Rule(after_s, action) if after_s else None


def decide(wanted: Rule | None, use: IdlePodUse, now_ns: int, grace_s: float) -> IdleVerdict:
    """Return what to do with a pod. A use in the future, as after an error of a clock, counts as use now."""
    if wanted is None or use.last_ns is None or now_ns - use.last_ns < wanted.after_s * _NS:
        return IdleVerdict.NOTHING
    if wanted.action is IdleAction.REPORT:
        return IdleVerdict.REPORT
    if use.warned_ns is None or use.warned_ns <= use.last_ns:
        return IdleVerdict.WARN
    return IdleVerdict.ACT if now_ns - use.warned_ns >= grace_s * _NS else IdleVerdict.NOTHING


def duration_text(seconds: float) -> str:
    """Write a time as an annotation has it: `45s`, `30m`, `1h30m`; from a minute on in whole minutes."""
    if seconds < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{int(seconds)}s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if minutes or not hours else ''}"


def _field(name: str) -> str:
    return f"metadata.annotations[{name}]"


def seconds_of(text: str) -> int | None:
    """Return the seconds of a time such as 30m; 0 for never, None where the text is none or is out of range."""
    if text == NEVER:
        return 0
    match = _DURATION.fullmatch(text) if text else None
    hours, minutes, seconds = (int(group or 0) for group in match.groups()) if match else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + seconds
    return total if _LEAST_S <= total <= _MOST_S else None
