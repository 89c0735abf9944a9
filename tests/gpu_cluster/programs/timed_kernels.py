"""timed_kernels.py SECONDS: kernels of a millisecond each by the card's own nanosecond clock, without a pause.

A kernel that counts cycles lasts as long as the card's clock rate lets it, which differs between a card that is busy
all the time and one that rests; these do not. Prints {"kernels": number, "seconds": duration, "rate": a second}.
"""

import json
import sys
import time

import cupy

KERNEL_NS = 1_000_000
IN_FLIGHT = 4
PER_EVENT = 5
SPIN = cupy.RawKernel(
    r"""
extern "C" __global__ void spin(unsigned long long ns) {
  unsigned long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < ns);
}
""",
    "spin",
)


def spin() -> None:
    SPIN((1,), (1,), (cupy.uint64(KERNEL_NS),))


def main(seconds: float) -> None:
    spin()
    cupy.cuda.Device().synchronize()
    print(json.dumps({"ready": True}), flush=True)
    events = [cupy.cuda.Event(disable_timing=True) for _ in range(IN_FLIGHT)]
    began, kernels = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for event in events:
            event.synchronize()
            for _ in range(PER_EVENT):
                spin()
            kernels += PER_EVENT
            event.record()
    cupy.cuda.Device().synchronize()
    took = time.monotonic() - began
    print(json.dumps({"kernels": kernels, "seconds": took, "rate": kernels / took}), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
