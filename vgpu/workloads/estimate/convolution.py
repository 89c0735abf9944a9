"""ResNet with bottleneck or basic blocks (He et al., "Deep Residual Learning", 2015), as ResNetConfig describes it.

A convolution keeps its input, batch norm its input, ReLU its output, which is the next convolution's input. So a
convolution with norm and ReLU keeps two tensors of its output's size, and the shortcut, which has no ReLU, one. Max
pooling keeps the indices in int64. FLOPs are two for each multiplication and addition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.workloads.estimate.loss import classifier_loss
from vgpu.workloads.estimate.plan import EstimatePlan
from vgpu.workloads.estimate.stages import ModelStage, StagedModel

_INDEX_BYTES: Final = 8
_REDUCTION: Final = 4  # of a bottleneck's width


@dataclass(frozen=True, slots=True)
class ResNet:
    """The shape of a ResNet; `image` is the width and height of its input in pixels."""

    name: str
    channels: int
    stem: int
    widths: Sequence[int]
    depths: Sequence[int]
    bottleneck: bool
    classes: int
    image: int


@dataclass(frozen=True, slots=True)
class _Conv:
    name: str
    before: int
    after: int
    kernel: int
    side: int  # of the output, in pixels
    relu: bool = True


def build(shape: ResNet, plan: EstimatePlan) -> StagedModel:
    """Return a ResNet for a plan."""
    side = -(-shape.image // 2)
    stem = _stage(_Conv("stem", shape.channels, shape.stem, 7, side), plan)
    pooled = plan.batch * shape.stem * (-(-side // 2)) ** 2
    first = ModelStage("image", saved=plan.batch * shape.channels * shape.image**2)
    pool = ModelStage("pool", saved=pooled, saved_bytes=pooled * _INDEX_BYTES, backward=2 * pooled)
    blocks = [_stage(convolution, plan) for convolution in _convolutions(shape, -(-side // 2))]
    last = shape.widths[-1]
    linear = ModelStage(
        "linear",
        parameters=last * shape.classes + shape.classes,
        saved=plan.batch * last,
        flops=2 * plan.batch * last * shape.classes,
    )
    return StagedModel(shape.name, [first, stem, pool, *blocks, linear, classifier_loss(shape.classes, plan)])


def _convolutions(shape: ResNet, side: int) -> list[_Conv]:
    found: list[_Conv] = []
    before = shape.stem
    for number, (width, depth) in enumerate(zip(shape.widths, shape.depths, strict=True)):
        for index in range(depth):
            reduced = -(-side // 2) if number and not index else side
            found += _convolutions_of_block(f"stage {number} block {index}", before, width, side, reduced, shape)
            before, side = width, reduced
    return found


def _convolutions_of_block(name: str, before: int, width: int, side: int, reduced: int, shape: ResNet) -> list[_Conv]:
    shortcut = (
        [_Conv(f"{name} shortcut", before, width, 1, reduced, relu=False)] if before != width or side != reduced else []
    )
    if not shape.bottleneck:
        return [*shortcut, _Conv(name, before, width, 3, reduced), _Conv(name, width, width, 3, reduced)]
    narrow = width // _REDUCTION
    return [
        *shortcut,
        _Conv(name, before, narrow, 1, side),
        _Conv(name, narrow, narrow, 3, reduced),
        _Conv(name, narrow, width, 1, reduced),
    ]


def _stage(conv: _Conv, plan: EstimatePlan) -> ModelStage:
    out = plan.batch * conv.after * conv.side**2
    weights = conv.before * conv.after * conv.kernel**2
    return ModelStage(
        name=conv.name,
        parameters=weights + 2 * conv.after,
        saved=out * (2 if conv.relu else 1),
        saved_bytes=2 * 4 * conv.after,  # batch norm's mean and deviation
        forward=out,
        backward=2 * out,
        flops=2 * plan.batch * conv.side**2 * weights,
    )
