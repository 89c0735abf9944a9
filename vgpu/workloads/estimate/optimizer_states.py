"""Memory of optimizers: bytes that they keep for a parameter, and what a step needs for a moment.

PyTorch keeps states in the type of the parameters: none for SGD, one with momentum, two for Adam and AdamW
(torch.optim, `exp_avg` and `exp_avg_sq`). With master weights, as mixed-precision optimizers of Apex, Megatron and
DeepSpeed keep them, states and a copy of the weights are fp32: 12 bytes for each parameter with Adam (Rajbhandari et
al., "ZeRO", 2020, section 3.1, K = 12). bitsandbytes keeps two states of one byte, and for each block of 256 values
of each state a scale in fp32 (Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022); its tensors of
less than 4096 elements stay in fp32, which is left out.
"""

from typing import Final

from vgpu.workloads.estimate.plan import Dtype, EstimatePlan, Optimizer

_STATES: Final = {
    Optimizer.NONE: 0,
    Optimizer.SGD: 0,
    Optimizer.MOMENTUM: 1,
    Optimizer.ADAM: 2,
    Optimizer.ADAMW: 2,
    Optimizer.ADAMW_FUSED: 2,
    Optimizer.ADAMW_8BIT: 2,
}
_BLOCK: Final = 256  # bitsandbytes' blocks
# The default implementation ("foreach") handles all tensors at once and holds the square roots of the second moments
# meanwhile.
_FOREACH: Final = frozenset({Optimizer.ADAM, Optimizer.ADAMW})


def state_bytes(plan: EstimatePlan, parameters: int) -> int:
    """Return the bytes of the states of an optimizer for this many parameters, master weights too."""
    states = _STATES[plan.optimizer]
    kept = Dtype.FP32 if plan.master_weights else plan.dtype
    master = Dtype.FP32.size(parameters) if plan.master_weights else 0
    if plan.optimizer is Optimizer.ADAMW_8BIT:
        return states * (parameters + Dtype.FP32.size(-(-parameters // _BLOCK))) + master
    return states * kept.size(parameters) + master


def step_bytes(plan: EstimatePlan, parameters: int) -> int:
    """Return what a step of the optimizer needs for a moment."""
    kept = Dtype.FP32 if plan.master_weights else plan.dtype
    return kept.size(parameters) if plan.optimizer in _FOREACH else 0
