"""A process that uses CUDA as it is told: `python -m benchmarks.space.client` reads a line, and answers with JSON.

init                 the result of cuInit
start [PERCENTAGE]   cuInit and a context, after setting the percentage of multiprocessors in its environment
attribute N          the value of a device's attribute
alloc MIB            the result of an allocation, which is kept
spin US              the result of launching a kernel of that duration
fault                the result of launching a kernel that writes to an address that does not exist
sync                 the result of waiting for its work
wait_value           the result of a stream's wait for a word of host memory that already has the value
throughput US S      kernels done within S seconds, each waited for
beside US            the same until the next line, `enough`: number of kernels, the longest time in ms from the end of
                     one to the end of the next, and the result that ended it
enough               0
abort                no answer: the process aborts, as after a failed assertion
"""

import ctypes
import json
import os
import select
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

P = ctypes.c_void_p
SPIN: Final = (
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spin_{us}()\n{{\n.reg .u64 %t<3>;\n.reg .pred %p;\n"
    "mov.u64 %t0, %globaltimer;\nAGAIN:\nmov.u64 %t1, %globaltimer;\nsub.u64 %t2, %t1, %t0;\n"
    "setp.lt.u64 %p, %t2, {us}000;\n@%p bra AGAIN;\nret;\n}}\n"
)
FAULT: Final = (
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry fault_10()\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "mov.u64 %a, 64;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n"
)

COMMANDS: Final = (
    *("init", "start", "attribute", "alloc", "spin", "fault", "sync", "wait_value", "throughput", "beside", "enough"),
    "abort",
)


class CudaClient:
    """CUDA in this process."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context = P()
        self._loaded: dict[str, P] = {}

    def init(self) -> int:
        """Initialize CUDA."""
        return int(self._cuda.cuInit(0))

    def start(self, percentage: str = "") -> int:
        """Make a context on the first device."""
        if percentage:
            os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = percentage
        retain = self._cuda.cuDevicePrimaryCtxRetain
        result = self._cuda.cuInit(0) or retain(ctypes.byref(self._context), 0)
        return int(result or self._cuda.cuCtxSetCurrent(self._context))

    def attribute(self, number: str) -> int:
        """Return the value of an attribute, or the result less than 0."""
        value = ctypes.c_int()
        result = self._cuda.cuDeviceGetAttribute(ctypes.byref(value), int(number), 0)
        return -result if result else value.value

    def alloc(self, mib: str) -> int:
        """Allocate memory."""
        return int(self._cuda.cuMemAlloc_v2(ctypes.byref(P()), ctypes.c_size_t(int(mib) << 20)))

    def spin(self, us: str) -> int:
        """Launch a kernel."""
        return self._launch(f"spin_{us}", SPIN.format(us=us))

    def fault(self) -> int:
        """Launch a kernel that faults."""
        return self._launch("fault_10", FAULT)

    def sync(self) -> int:
        """Wait for all work."""
        return int(self._cuda.cuCtxSynchronize())

    def wait_value(self) -> int:
        """Queue a wait on the default stream, for a value that memory has already; some drivers refuse such waits."""
        host, address = P(), P()
        result = self._cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(64), 2)
        result = result or self._cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(address), host, 0)
        return int(result or self._cuda.cuStreamWaitValue32_v2(None, address, 0, 0))

    def throughput(self, us: str, seconds: str) -> int:
        """Count kernels that are done, each waited for."""
        ends, count = time.monotonic() + float(seconds), 0
        while time.monotonic() < ends and self.spin(us) == 0 and self.sync() == 0:
            count += 1
        return count

    def beside(self, us: str) -> list[float]:
        """Run kernels, each waited for, until there is a line to read."""
        count, longest, result, last = 0, 0.0, 0, time.monotonic()
        while result == 0 and not select.select([sys.stdin], [], [], 0)[0]:
            result = self.spin(us) or self.sync()
            now = time.monotonic()
            count, longest, last = count + 1, max(longest, now - last), now
        return [count, longest * 1000, result]

    def enough(self) -> int:
        """End `beside`."""
        return 0

    def abort(self) -> int:
        """End as a failed assertion does."""
        os.abort()

    def _launch(self, name: str, text: str) -> int:
        module, function = P(), self._loaded.get(name)
        if function is None:
            function = P()
            result = self._cuda.cuModuleLoadData(ctypes.byref(module), text.encode())
            result = result or self._cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
            if result:
                return int(result)
            self._loaded[name] = function
        return int(self._cuda.cuLaunchKernel(function, *[1] * 6, 0, None, None, None))


def main() -> None:
    """Carry out the lines of standard input."""
    client = CudaClient()
    calls: dict[str, Callable[..., object]] = {name: getattr(client, name) for name in COMMANDS}
    unbuffered = os.fdopen(sys.stdin.fileno(), "rb", buffering=0)  # `beside` asks whether there is one more to read
    for line in iter(unbuffered.readline, b""):
        name, *arguments = line.decode().split()
        print(json.dumps(calls[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
