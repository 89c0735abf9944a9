"""burn.py SECONDS [START]: kernels of about a millisecond without a pause, from START on (seconds since 1970).

Prints what was counted: {"kernels": number, "seconds": duration, "rate": a second}.
"""

import json
import sys
import time

import torch

CYCLES = 2_000_000  # a kernel that waits this long: its power is low, so that the clock is the same beside others
IN_FLIGHT = 4


def main(seconds: float, start: float = 0.0) -> None:
    torch.cuda._sleep(CYCLES)
    torch.cuda.synchronize()
    print(json.dumps({"ready": True}), flush=True)
    time.sleep(max(0.0, start - time.time()))
    events = [torch.cuda.Event() for _ in range(IN_FLIGHT)]
    began, kernels = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for event in events:
            event.synchronize()
            for _ in range(5):
                torch.cuda._sleep(CYCLES)
            kernels += 5
            event.record()
    torch.cuda.synchronize()
    took = time.monotonic() - began
    print(json.dumps({"kernels": kernels, "seconds": took, "rate": kernels / took}), flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:3]))
