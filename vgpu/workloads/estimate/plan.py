"""What a user asks of an estimate."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_WIDTH: Final = 10**8  # of a layer, a vocabulary, a sequence, a batch


class Dtype(StrEnum):
    """Types of weights and activations."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"

    def size(self, elements: int) -> int:
        """Return the bytes of this many elements."""
        return -(-elements * _BITS[self] // 8)


_BITS = {Dtype.FP32: 32, Dtype.BF16: 16, Dtype.FP16: 16, Dtype.FP8: 8, Dtype.INT8: 8, Dtype.INT4: 4}


class Optimizer(StrEnum):
    """Optimizers, as PyTorch and bitsandbytes have them."""

    NONE = "none"
    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAM = "adam"
    ADAMW = "adamw"
    ADAMW_FUSED = "adamw-fused"
    ADAMW_8BIT = "adamw-8bit"


class Attention(StrEnum):
    """How attention is computed: with the matrix of scores in memory, or without (FlashAttention)."""

    EAGER = "eager"
    FLASH = "flash"


@dataclass(frozen=True, slots=True)
class EstimatePlan:
    """What a user asks.

    Attributes:
        training: a training step; else a forward pass with a KV cache.
        batch: samples of one process in one forward pass.
        sequence: tokens of a sample; for inference the prompt and what is generated.
        dtype: of weights and gradients.
        compute: of activations; other than `dtype` under autocast.
        optimizer: none without training.
        master_weights: the optimizer keeps a copy of the weights in fp32, and its states in fp32.
        checkpointing: of the activations of a block only its input is kept.
        attention: with or without the matrix of scores.
        accumulate: forward passes between two steps of the optimizer.
        data_parallel: processes that each hold other samples.
        zero: stage of ZeRO: 1 splits the optimizer's states, 2 gradients too, 3 weights too.
        tensor_parallel: processes that share each layer.
    """

    training: bool = True
    batch: int = 1
    sequence: int = 1024
    dtype: Dtype = Dtype.FP32
    compute: Dtype = Dtype.FP32
    optimizer: Optimizer = Optimizer.ADAMW
    master_weights: bool = False
    checkpointing: bool = False
    attention: Attention = Attention.FLASH
    accumulate: int = 1
    data_parallel: int = 1
    zero: int = 0
    tensor_parallel: int = 1

    @property
    def tokens(self) -> int:
        """Tokens of one forward pass."""
        return self.batch * self.sequence

    @property
    def gpus(self) -> int:
        """GPUs of the whole job."""
        return self.data_parallel * self.tensor_parallel
