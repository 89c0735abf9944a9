"""A perceptron with ReLU: a linear layer keeps its input, ReLU its output, which is the next layer's input."""

import itertools
from collections.abc import Sequence

from vgpu.workloads.estimate.loss import classifier_loss
from vgpu.workloads.estimate.plan import EstimatePlan
from vgpu.workloads.estimate.stages import ModelStage, StagedModel


def build(sizes: Sequence[int], plan: EstimatePlan) -> StagedModel:
    """Return a perceptron whose layers have these widths, from the input to the logits."""
    layers = [_layer(index, before, after, plan) for index, (before, after) in enumerate(itertools.pairwise(sizes))]
    return StagedModel(f"MLP {'-'.join(map(str, sizes))}", [*layers, classifier_loss(sizes[-1], plan)])


def _layer(index: int, before: int, after: int, plan: EstimatePlan) -> ModelStage:
    return ModelStage(
        name=f"linear {index}",
        parameters=before * after + after,
        saved=plan.batch * before,
        forward=plan.batch * after,
        backward=plan.batch * (before + after),
        flops=2 * plan.batch * before * after,
    )
