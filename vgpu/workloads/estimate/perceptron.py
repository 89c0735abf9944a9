"""A perceptron with ReLU: a linear layer keeps its input, ReLU its output, which is the next layer's input."""

import itertools
from collections.abc import Sequence

from vgpu.workloads.estimate.loss import classifier_loss
from vgpu.workloads.estimate.plan import Plan
from vgpu.workloads.estimate.stages import Model, Stage


def build(sizes: Sequence[int], plan: Plan) -> Model:
    """Return a perceptron whose layers have these widths, from the input to the logits."""
    layers = [_layer(index, before, after, plan) for index, (before, after) in enumerate(itertools.pairwise(sizes))]
    return Model(f"MLP {'-'.join(map(str, sizes))}", [*layers, classifier_loss(sizes[-1], plan)])


def _layer(index: int, before: int, after: int, plan: Plan) -> Stage:
    return Stage(
        name=f"linear {index}",
        parameters=before * after + after,
        saved=plan.batch * before,
        forward=plan.batch * after,
        backward=plan.batch * (before + after),
        flops=2 * plan.batch * before * after,
    )
