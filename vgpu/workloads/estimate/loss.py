"""Cross entropy, which keeps the logarithms of the probabilities; the program itself holds the logits."""

from vgpu.workloads.estimate.plan import Dtype, EstimatePlan
from vgpu.workloads.estimate.stages import ModelStage


def cross_entropy(rows: int, classes: int, plan: EstimatePlan) -> ModelStage:
    """Return the loss of `rows` predictions over `classes`; PyTorch computes it in fp32, under autocast too.

    The backward pass holds the gradients of the probabilities and of the logits at once
    (torch.nn.functional.cross_entropy is log_softmax and nll_loss).
    """
    size = rows * classes
    if not plan.training:
        return ModelStage("logits", held_bytes=plan.compute.size(size))
    wide = Dtype.FP32.size(size)
    factor = Dtype.FP32.size(1) // max(plan.compute.size(1), 1)
    return ModelStage("loss", saved_bytes=wide, held_bytes=plan.compute.size(size), backward=2 * size * factor)


def classifier_loss(classes: int, plan: EstimatePlan) -> ModelStage:
    """Return the loss of one prediction for each sample."""
    return cross_entropy(plan.batch, classes, plan)
