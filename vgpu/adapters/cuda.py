"""The CUDA driver API by ctypes, as far as a load generator needs it: one kernel on one card.

Nothing is allocated on the card beside the context and the kernel's code. The kernel is PTX, which the driver compiles
for its card. Source of the calls: NVIDIA's CUDA Driver API reference, https://docs.nvidia.com/cuda/cuda-driver-api/
"""

import ctypes
import uuid
from types import TracebackType
from typing import Final, Self

from vgpu.domain.errors import CudaError
from vgpu.domain.identifiers import CardUuid

LIBRARY: Final = "libcuda.so.1"
THREADS: Final = 256  # of a block
_BLOCKING_SYNC: Final = 4  # CU_CTX_SCHED_BLOCKING_SYNC: the host sleeps while the card works
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_UUID_BYTES: Final = 16
_NAME: Final = b"loop_hold_1000"  # about 1,000 ns for an iteration, which the simulated driver reads from the name

# Each iteration is 50 rounds of 8 dependent multiply-adds: 400 x 4 cycles, about 1 us at 1.7 GHz. The trap is never
# reached; it keeps the compiler from removing the sums.
_PTX: Final = b"""
.version 6.0
.target sm_52
.address_size 64
.visible .entry loop_hold_1000(.param .u32 iterations)
{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    ld.param.u32 %r1, [iterations];
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f3F7FFF00;
    mov.f32 %f3, 0f38D1B717;
    mov.u32 %r2, 0;
OUTER:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mov.u32 %r3, 0;
INNER:
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 50;
    @%p2 bra INNER;
    add.u32 %r2, %r2, 1;
    bra OUTER;
DONE:
    setp.lt.f32 %p3, %f1, 0f00000000;
    @%p3 trap;
    ret;
}
"""


class LoopKernel:
    """A kernel on one card that loops as often as asked, on all multiprocessors. Use it from one thread."""

    def __init__(self, gpu: CardUuid) -> None:
        """Make a context on the card with this UUID (`GPU-...`). Raises CudaError."""
        try:
            self._driver = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CudaError(0, f"{LIBRARY}: {error}") from error
        self._call("cuInit", 0)
        self._device = self._find(gpu)
        self._blocks = 2 * self._attribute(_MULTIPROCESSORS)
        self._call("cuDevicePrimaryCtxSetFlags_v2", self._device, _BLOCKING_SYNC)
        context, module, self._kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(_PTX))
        self._call("cuModuleGetFunction", ctypes.byref(self._kernel), module, ctypes.c_char_p(_NAME))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the context. An error of the driver is not raised: the process ends next."""
        self._driver.cuDevicePrimaryCtxRelease_v2(self._device)

    def run(self, iterations: int) -> None:
        """Run the kernel once, and wait for its end; an iteration takes about 1 us. Raises CudaError."""
        count = ctypes.c_uint32(iterations)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(count))
        shape = (self._blocks, 1, 1, THREADS, 1, 1)
        self._call("cuLaunchKernel", self._kernel, *shape, 0, None, parameters, None)
        self._call("cuCtxSynchronize")

    def _find(self, gpu: CardUuid) -> ctypes.c_int:
        count, device = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        for ordinal in range(count.value):
            self._call("cuDeviceGet", ctypes.byref(device), ordinal)
            known = (ctypes.c_ubyte * _UUID_BYTES)()
            self._call("cuDeviceGetUuid", known, device)
            if f"GPU-{uuid.UUID(bytes=bytes(known))}" == gpu:
                return ctypes.c_int(device.value)
        raise CudaError(0, f"{gpu}: not among the {count.value} cards that CUDA shows")

    def _attribute(self, attribute: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self._device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise CudaError(code, f"{name} failed with CUDA error {code}")
