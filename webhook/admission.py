"""From a review to its answer: the decisions behind `/mutate` and `/validate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from vgpu.domain.problem import Problem
from webhook import advice, mutate, pods, validate, wire
from webhook.rules import Rules


class Outcome(StrEnum):
    """How a review was answered."""

    ALLOWED = "allowed"
    CHANGED = "changed"
    DENIED = "denied"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a review, and what it says in one word."""

    body: bytes
    outcome: Outcome


def mutating(review: wire.Request, rules: Rules) -> Answer:
    """Answer `/mutate`: always allow, with a patch for pods that ask for GPUs."""
    pod, old = review.object, review.old_object
    if pod is None or pods.is_mirror(pod, review.user.groups):
        return _allow(review)
    if review.operation == "CREATE":
        return _allow(review, mutate.patch(pod, mutate.mutate(pod, rules)))
    if review.sub_resource == "ephemeralcontainers" and old is not None:
        return _allow(review, mutate.patch(pod, mutate.mutate_debugged(old, pod)))
    return _allow(review)


def validating(review: wire.Request, rules: Rules) -> Answer:
    """Answer `/validate`: allow, or deny with every problem."""
    problems = _problems(review, rules)
    if problems:
        return Answer(wire.deny(review.uid, validate.message(problems)), Outcome.DENIED)
    warnings = advice.warnings(review.object) if review.object and review.operation == "CREATE" else ()
    return Answer(wire.allow(review.uid, warnings=warnings), Outcome.ALLOWED)


def _allow(review: wire.Request, patch: Sequence[wire.Operation] = ()) -> Answer:
    return Answer(wire.allow(review.uid, patch), Outcome.CHANGED if patch else Outcome.ALLOWED)


def _problems(review: wire.Request, rules: Rules) -> list[Problem]:
    pod, old = review.object, review.old_object
    if pod is None:
        return []
    if old is not None:
        return validate.on_update(old, pod)
    if pods.is_mirror(pod, review.user.groups):
        return validate.forged(pod)
    return validate.on_create(pod, rules)
