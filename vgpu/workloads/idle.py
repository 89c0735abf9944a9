"""Whether a container holds a GPU that it does not use, and what is done about that. Pure: no clock, no wiring.

Use is a kernel of the container itself. CPU time and the utilisation of the whole card, which others use, say
nothing. Where the time of the last kernel is not known, nothing is done.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

AFTER: Final = "idle-after"  # the annotation's name behind the domain: 30m, 1h30m, or `never`
ACTION: Final = "idle-action"
NEVER: Final = "never"

_DURATION: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)
_LEAST_S: Final = 60
_MOST_S: Final = 30 * 24 * 3600
_NS: Final = 1_000_000_000


class Action(StrEnum):
    """What is done with an idle container."""

    REPORT = "report"
    EVICT = "evict"
    SCALE_TO_ZERO = "scale-to-zero"
    CULL = "cull"


@dataclass(frozen=True, slots=True)
class Rule:
    """When a container counts as idle, and what is done then."""

    after_ns: int
    action: Action


class Verdict(StrEnum):
    """What to do now."""

    NOTHING = "nothing"
    REPORT = "report"
    WARN = "warn"
    ACT = "act"


@dataclass(frozen=True, slots=True)
class Use:
    """What is known of a container (CLOCK_MONOTONIC of its node, ns).

    Attributes:
        started_ns: when it started.
        last_kernel_ns: when its last kernel was launched or ended; 0 for never; None where it cannot be known, as for a
            container without the limiter.
        in_flight: whether a kernel runs or waits for a turn now.
        warned_ns: when it was warned; None for never.
    """

    started_ns: int
    last_kernel_ns: int | None
    in_flight: bool = False
    warned_ns: int | None = None


def rule(annotations: Mapping[str, str], namespace: Mapping[str, str], domain: str) -> Rule | None:
    """Return the rule of a container's pod; None for no rule. The pod's annotations precede those of its namespace.

    Raises ValueError, which names the annotation.
    """
    after = _given(annotations, namespace, f"{domain}/{AFTER}")
    if after is None or after == NEVER:
        return None
    action = _given(annotations, namespace, f"{domain}/{ACTION}") or Action.REPORT
    if action not in set(Action):
        raise ValueError(f"{domain}/{ACTION}: {action[:40]!r} is none of {', '.join(Action)}")
    return Rule(_nanoseconds(f"{domain}/{AFTER}", after), Action(action))


def decide(wanted: Rule | None, use: Use, now_ns: int, grace_ns: int) -> Verdict:
    """Return what to do with a container: a warning precedes an action by at least the grace time.

    Any kernel after the warning makes the warning void. A kernel in the future, as after an error of the node's clock,
    counts as use now.
    """
    if wanted is None or use.last_kernel_ns is None or use.in_flight:
        return Verdict.NOTHING
    used_ns = max(use.started_ns, use.last_kernel_ns)
    if now_ns - used_ns < wanted.after_ns:
        return Verdict.NOTHING
    if wanted.action is Action.REPORT:
        return Verdict.REPORT
    if use.warned_ns is None or use.warned_ns <= used_ns:
        return Verdict.WARN
    return Verdict.ACT if now_ns - use.warned_ns >= grace_ns else Verdict.NOTHING


def _given(annotations: Mapping[str, str], namespace: Mapping[str, str], name: str) -> str | None:
    return annotations.get(name, namespace.get(name))


def _nanoseconds(name: str, text: str) -> int:
    match = _DURATION.fullmatch(text) if text else None
    hours, minutes, seconds = (int(each or 0) for each in match.groups()) if match else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + seconds
    if not _LEAST_S <= total <= _MOST_S:
        raise ValueError(
            f"{name}: {text[:40]!r} is not a time from 1m to 720h, such as 30m or 1h30m, and not `{NEVER}`"
        )
    return total * _NS
