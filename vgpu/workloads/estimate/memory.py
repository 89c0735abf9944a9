"""The memory of a step: a walk through the stages forward and backward, which finds the peak.

PyTorch frees what a stage kept as soon as its backward pass is done, and the gradients of its weights appear then. So
the peak is at the beginning of the backward pass (large batches), at its end, or in the optimizer's step (small
batches).

ZeRO (Rajbhandari et al., 2020, section 5): over d data-parallel GPUs, stage 1 keeps 1/d of the optimizer's states,
stage 2 of the gradients too, stage 3 of the weights too. Checkpointing (Chen et al., "Training Deep Nets with Sublinear
Memory Cost", 2016) keeps the input of each block and computes the block again before its backward pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.domain.quantity import MIB
from vgpu.workloads.estimate import optimizer_states
from vgpu.workloads.estimate.plan import EstimatePlan, Optimizer
from vgpu.workloads.estimate.stages import ModelStage, StagedModel

# What one process has on a card beside its tensors. The context of CUDA with the kernels of PyTorch that a training
# step loads: 742 to 762 MiB on an H200 with driver 580 and PyTorch 2.11 (benchmarks/estimate_accuracy.py). The
# workspaces of cuBLAS: PyTorch's CUDAHooks take 32 MiB on Hopper for each handle, one of the forward pass and one of
# the backward pass; 8.125 MiB on others.
CONTEXT_BYTES: Final = 760 * MIB
LIBRARY_BYTES: Final = 2 * 32 * MIB

# PyTorch's allocator takes segments of 2 MiB for tensors below 1 MiB and of 20 MiB for those below 10 MiB, and keeps
# what is free in them (docs.pytorch.org, "CUDA semantics", memory management). The part that lies idle depends on the
# order of sizes. The percents are of what is neither weights nor states, and bring 114 of 116 totals within 10 % of
# what NVML says on the H200; two with checkpointing are 12 % too low.
_SEGMENT_BYTES: Final = 20 * MIB
_IDLE_PERCENT: Final = 12
_CHECKPOINTING_IDLE_PERCENT: Final = 40
_MOST_IDLE_BYTES: Final = 1024 * MIB


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on one GPU.

    Attributes:
        weights: the parameters, and their casts under autocast.
        gradients: of all parameters, as they are at the end of the backward pass.
        optimizer: its states and master weights.
        activations: what the forward pass keeps, with the logits.
        kv_cache: keys and values of earlier tokens.
        moment: what the peak needs beside all that, such as gradients of activations.
        peak: the most that tensors use at once (`torch.cuda.max_memory_allocated`, less the libraries' workspaces). The
            parts above do not all exist at that time.
        at: when the peak is.
        context: the CUDA context.
        libraries: workspaces.
        idle: what the allocator holds beside tensors.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    kv_cache: int
    moment: int
    peak: int
    at: str
    context: int
    libraries: int
    idle: int

    @property
    def total(self) -> int:
        """All of it, as NVML counts a process."""
        return self.peak + self.context + self.libraries + self.idle


@dataclass(frozen=True, slots=True)
class _Moment:
    at: str
    live: int
    extra: int


def estimate(model: StagedModel, plan: EstimatePlan) -> MemoryEstimate:
    """Return the memory of a step of training, or of decoding with a full KV cache."""
    weights = _weights(model, plan)
    gradients = _gradients(model, plan) if plan.training else 0
    states = _share(optimizer_states.state_bytes(plan, model.parameters), plan, 1) if plan.training else 0
    cache = plan.compute.size(model.kv_elements)
    resident = weights + states + cache + (gradients if plan.accumulate > 1 else 0)
    moments = list(_training(model, plan, resident, gradients) if plan.training else _inference(model, plan, resident))
    highest = max(moments, key=lambda moment: moment.live + moment.extra)
    peak = highest.live + highest.extra
    return MemoryEstimate(
        weights=weights,
        gradients=gradients,
        optimizer=states,
        activations=sum(_kept(stage, plan) + stage.held_bytes for stage in model.stages) if plan.training else 0,
        kv_cache=cache,
        moment=highest.extra,
        peak=peak,
        at=highest.at,
        context=CONTEXT_BYTES,
        libraries=LIBRARY_BYTES,
        idle=_idle(peak - weights - states, plan),
    )


def _idle(changing: int, plan: EstimatePlan) -> int:
    """Return what the allocator keeps idle beside tensors that come and go."""
    percent = _CHECKPOINTING_IDLE_PERCENT if plan.checkpointing else _IDLE_PERCENT
    return min(max(_SEGMENT_BYTES, changing * percent // 100), _MOST_IDLE_BYTES)


def _share(size: int, plan: EstimatePlan, stage: int) -> int:
    """Return what one GPU keeps of something that ZeRO splits from this stage on."""
    return -(-size // plan.data_parallel) if plan.zero >= stage else size


def _weights(model: StagedModel, plan: EstimatePlan) -> int:
    own = _share(plan.dtype.size(model.parameters), plan, 3)
    casts = plan.compute.size(model.parameters) if plan.compute is not plan.dtype and plan.training else 0
    return own + casts


def _gradients(model: StagedModel, plan: EstimatePlan) -> int:
    if plan.optimizer is Optimizer.NONE:
        return 0
    return _share(plan.dtype.size(model.parameters), plan, 2)


def _kept(stage: ModelStage, plan: EstimatePlan) -> int:
    if plan.checkpointing and stage.entry:
        return plan.compute.size(stage.entry)
    return plan.compute.size(stage.saved) + stage.saved_bytes


def _gathered(stage: ModelStage, plan: EstimatePlan) -> int:
    """Return the weights of a stage that ZeRO's third stage collects for a moment."""
    return plan.dtype.size(stage.parameters) if plan.zero == 3 else 0  # noqa: PLR2004 - the stage's number


def _training(model: StagedModel, plan: EstimatePlan, resident: int, gradients: int) -> Iterator[_Moment]:
    """Yield the memory after each stage of the forward pass, in each of the backward pass, and in the step."""
    live = resident
    for stage in model.stages:
        live += _kept(stage, plan) + stage.held_bytes
        yield _Moment("the forward pass", live, plan.compute.size(stage.forward) + _gathered(stage, plan))
    yield from _backward(model.stages, plan, live, gradients)
    held = sum(stage.held_bytes for stage in model.stages)
    kept = resident + held + (gradients if plan.accumulate == 1 else 0)
    parameters = _share(model.parameters, plan, 1)
    yield _Moment("the optimizer's step", kept, optimizer_states.step_bytes(plan, parameters))


def _backward(stages: Sequence[ModelStage], plan: EstimatePlan, live: int, gradients: int) -> Iterator[_Moment]:
    total = sum(stage.parameters for stage in stages) or 1
    for stage in reversed(stages):
        again = plan.compute.size(stage.saved) + stage.saved_bytes if plan.checkpointing and stage.entry else 0
        grown = gradients * stage.parameters // total if plan.accumulate == 1 else 0
        yield _Moment(
            "the backward pass", live, again + plan.compute.size(stage.backward) + grown + _gathered(stage, plan)
        )
        live += grown - _kept(stage, plan)


def _inference(model: StagedModel, plan: EstimatePlan, resident: int) -> Iterator[_Moment]:
    for stage in model.stages:
        extra = plan.compute.size(stage.forward) + stage.held_bytes + _gathered(stage, plan)
        yield _Moment("the forward pass of the prompt", resident, extra)
