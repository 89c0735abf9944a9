"""Cards: memory, peak FLOP/s and bandwidth, from NVIDIA's data sheets.

Memory is what NVML reports as total, in MiB. FLOP/s are dense (no sparsity) and in units of 10^12: of tensor cores in
16 bit with fp32 sums, and of fp32 outside of tensor cores, which PyTorch uses unless TF32 is allowed. Bandwidth is in
GB/s.
"""

from dataclasses import dataclass
from typing import Final

from vgpu.domain.quantity import MIB
from vgpu.workloads.estimate.plan import Dtype


@dataclass(frozen=True, slots=True)
class CardModel:
    """A model of card."""

    name: str
    memory_mib: int
    tflops_16: float
    tflops_32: float
    gb_per_s: int

    def fits(self, size: int) -> bool:
        """Whether a share of this many bytes fits on an empty card."""
        return size <= self.memory_mib * MIB

    def seconds(self, flops: int, dtype: Dtype) -> float:
        """Return the least time for this many FLOPs."""
        return flops / ((self.tflops_32 if dtype is Dtype.FP32 else self.tflops_16) * 1e12)

    def seconds_to_read(self, size: int) -> float:
        """Return the least time to read this many bytes of the card's memory."""
        return size / (self.gb_per_s * 1e9)


CARDS: Final = (
    CardModel("T4", 15_360, 65, 8.1, 320),
    CardModel("A10", 23_028, 125, 31.2, 600),
    CardModel("L4", 23_034, 121, 30.3, 300),
    CardModel("RTX 4090", 24_564, 165.2, 82.6, 1008),
    CardModel("V100 32GB", 32_768, 125, 15.7, 900),
    CardModel("A100 40GB", 40_960, 312, 19.5, 1555),
    CardModel("L40S", 46_068, 362, 91.6, 864),
    CardModel("A40", 46_068, 149.7, 37.4, 696),
    CardModel("RTX A6000", 49_140, 154.8, 38.7, 768),
    CardModel("A100 80GB", 81_920, 312, 19.5, 2039),
    CardModel("H100 PCIe", 81_559, 756, 51, 2000),
    CardModel("H100 SXM", 81_559, 989, 67, 3350),
    CardModel("H200", 143_771, 989, 67, 4800),
    CardModel("B200", 183_359, 2250, 80, 8000),
)
