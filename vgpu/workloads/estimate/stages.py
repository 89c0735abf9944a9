"""A model as a list of stages: what each keeps for the backward pass, and what it needs for a moment."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelStage:
    """A part of a model in the order of its forward pass, for one micro-batch on one GPU.

    Counts are elements in the type of the activations, unless the name says bytes. A tensor that two operations keep
    counts once, in the first stage that keeps it.

    Attributes:
        name: for people.
        parameters: trained elements on this GPU.
        saved: elements that autograd keeps until the backward pass.
        saved_bytes: what it keeps in other types: masks, indices, statistics, fp32.
        entry: elements of the stage's input, which are all that checkpointing keeps; 0 where it does not apply.
        forward: elements that exist for a moment in the forward pass, beside what is kept.
        backward: elements that exist for a moment in the backward pass, beside what is kept.
        held_bytes: what the program itself holds until the step's end, such as logits.
        flops: of the forward pass.
    """

    name: str
    parameters: int = 0
    saved: int = 0
    saved_bytes: int = 0
    entry: int = 0
    forward: int = 0
    backward: int = 0
    held_bytes: int = 0
    flops: int = 0


@dataclass(frozen=True, slots=True)
class StagedModel:
    """A model in numbers.

    Attributes:
        name: for people.
        stages: in the order of the forward pass.
        kv_elements: elements of the KV cache for the whole batch, on one GPU; 0 where a model has none.
        assumptions: what the files do not say and was assumed, for people.
    """

    name: str
    stages: Sequence[ModelStage]
    kv_elements: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Trained elements on one GPU."""
        return sum(stage.parameters for stage in self.stages)

    @property
    def forward_flops(self) -> int:
        """FLOPs of a forward pass on one GPU."""
        return sum(stage.flops for stage in self.stages)
