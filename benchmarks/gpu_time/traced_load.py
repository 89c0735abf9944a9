"""Matrix products or a small model in PyTorch, with a CUPTI trace of each kernel.

    python -m benchmarks.gpu_time.traced_load products|small SECONDS FILE

small: requests of `benchmarks.applications.small_model`, one after the other.

Waits for a line; a small model then computes without a trace until another line comes. Computes for SECONDS, and writes
the begin and the end of each kernel on the card into FILE: pairs of 64-bit integers, ns since 1970. Prints JSON lines:
{"result": 0, "ready": true}, then {"result": 0, "kernels": N, "requests": M}; M is 0 for products.
"""

import array
import collections
import importlib
import json
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked
profiler: Any = importlib.import_module("torch.profiler")

SIZE = 6144  # about 0.7 ms a product on an H200: a trace of two minutes has 170,000 kernels
IN_FLIGHT = 16
WARM_S = 0.1


def main() -> None:
    """Run as the module's docstring says."""
    kind, seconds, path = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    work = _products() if kind == "products" else _small_model()
    torch.cuda.synchronize()
    print(json.dumps({"result": 0, "ready": True}), flush=True)
    sys.stdin.readline()
    if kind == "small":
        while not select.select([sys.stdin], [], [], 0)[0]:
            work(time.monotonic() + WARM_S)
        sys.stdin.readline()
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as trace:
        requests = work(time.monotonic() + seconds)
        torch.cuda.synchronize()
    spans = array.array("q", [end_ns for span in sorted(_spans(trace)) for end_ns in span])
    path.write_bytes(spans.tobytes())
    print(json.dumps({"result": 0, "kernels": len(spans) // 2, "requests": requests}), flush=True)


def _products() -> Callable[[float], int]:
    """Return what multiplies matrices until a time of the monotonic clock."""
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)
    torch.mm(left, right, out=out)

    def multiply(until: float) -> int:
        waiting = collections.deque[Any]()
        while time.monotonic() < until:
            torch.mm(left, right, out=out)
            waiting.append(torch.cuda.Event())
            waiting[-1].record()
            if len(waiting) > IN_FLIGHT:
                waiting.popleft().synchronize()
        return 0

    return multiply


def _small_model() -> Callable[[float], int]:
    """Return what serves requests until a time of the monotonic clock, and returns their number."""
    small_model = importlib.import_module("benchmarks.applications.small_model")
    with torch.inference_mode():
        model = small_model.SmallModel()

    def serve(until: float) -> int:
        requests = 0
        with torch.inference_mode():
            while time.monotonic() < until:
                model.request()
                requests += 1
        return requests

    return serve


def _spans(trace: Any) -> list[tuple[int, int]]:
    """Return the kernels on the card; torch before 2.4 has times in microseconds only."""
    found = []
    for event in trace.profiler.kineto_results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            is_ns = hasattr(event, "start_ns")
            begin = event.start_ns() if is_ns else event.start_us() * 1000
            took = event.duration_ns() if is_ns else event.duration_us() * 1000
            found.append((begin, begin + took))
    return found


if __name__ == "__main__":
    main()
