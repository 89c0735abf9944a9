"""From a review to its answer: the decisions behind `/mutate` and `/validate`."""

from vgpu.problem import Problem
from webhook import mutate, pods, validate, wire
from webhook.rules import Rules


def mutating(review: wire.Request, rules: Rules) -> bytes:
    """Answer `/mutate`: always allow, with a patch for pods that ask for GPUs."""
    pod, old = review.object, review.old_object
    if pod is None or pods.is_mirror(pod, review.user.groups):
        return wire.allow(review.uid)
    if review.operation == "CREATE":
        return wire.allow(review.uid, mutate.patch(pod, mutate.mutate(pod, rules)))
    if review.sub_resource == "ephemeralcontainers" and old is not None:
        return wire.allow(review.uid, mutate.patch(pod, mutate.mutate_debugged(old, pod)))
    return wire.allow(review.uid)


def validating(review: wire.Request, rules: Rules) -> bytes:
    """Answer `/validate`: allow, or deny with every problem."""
    problems = _problems(review, rules)
    return wire.deny(review.uid, validate.message(problems)) if problems else wire.allow(review.uid)


def _problems(review: wire.Request, rules: Rules) -> list[Problem]:
    pod, old = review.object, review.old_object
    if pod is None:
        return []
    if old is not None:
        return validate.on_update(old, pod)
    if pods.is_mirror(pod, review.user.groups):
        return validate.forged(pod)
    return validate.on_create(pod, rules)
