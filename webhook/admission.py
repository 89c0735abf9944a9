"""From a review to its answer: the decisions behind `/mutate` and `/validate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from vgpu.domain import pod_warnings
from vgpu.domain.problem import Problem
from webhook import mutate, pods, validate, wire
from webhook.rules import AdmissionSettings


class ReviewOutcome(StrEnum):
    """How a review was answered."""

    ALLOWED = "allowed"
    CHANGED = "changed"
    DENIED = "denied"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The answer to a review, and what it says in one word."""

    body: bytes
    outcome: ReviewOutcome


def mutating(review: wire.ReviewRequest, rules: AdmissionSettings) -> ReviewAnswer:
    """Answer `/mutate`: always allow, with a patch for pods that ask for GPUs.

    On UPDATE, what a pod's creation has changed is changed again where the same manifest is applied again.

    What was removed, and what percentages have become, is said here: the pod that `/validate` gets has neither.
    """
    pod, old = review.object, review.old_object
    if pod is None or pods.is_mirror(pod, review.user.groups):
        return _allow(review)
    if review.operation == "CREATE":
        mutated = mutate.mutate(pod, rules)
        return _allow(review, mutate.patch(pod, mutated.pod), [str(said) for said in mutated.said])
    if review.operation == "UPDATE" and old is not None and not review.sub_resource:
        mutated = mutate.mutate_changed(old, pod, rules)
        return _allow(review, mutate.patch(pod, mutated.pod), [str(said) for said in mutated.said])
    if review.sub_resource == "ephemeralcontainers" and old is not None:
        return _allow(review, mutate.patch(pod, mutate.mutate_debugged(old, pod)))
    return _allow(review)


def validating(review: wire.ReviewRequest, rules: AdmissionSettings) -> ReviewAnswer:
    """Answer `/validate`: allow, or deny with every problem."""
    problems = _problems(review, rules)
    if problems:
        return ReviewAnswer(wire.deny(review.uid, validate.message(problems)), ReviewOutcome.DENIED)
    warnings = pod_warnings.warnings(review.object) if review.object and review.operation == "CREATE" else ()
    return ReviewAnswer(wire.allow(review.uid, warnings=[str(said) for said in warnings]), ReviewOutcome.ALLOWED)


def _allow(
    review: wire.ReviewRequest, patch: Sequence[wire.Operation] = (), warnings: Sequence[str] = ()
) -> ReviewAnswer:
    outcome = ReviewOutcome.CHANGED if patch else ReviewOutcome.ALLOWED
    return ReviewAnswer(wire.allow(review.uid, patch, warnings), outcome)


def _problems(review: wire.ReviewRequest, rules: AdmissionSettings) -> list[Problem]:
    pod, old = review.object, review.old_object
    if pod is None:
        return []
    if old is not None:
        return validate.on_update(old, pod)
    if pods.is_mirror(pod, review.user.groups):
        return validate.forged(pod)
    return validate.on_create(pod, rules)
