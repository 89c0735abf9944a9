"""Kernels that wait for their host, as an autotuner's delay kernel does. Handles are numbers.

XLA's autotuner launches a kernel that spins until the host sets a word, then an event, what is to be timed, and another
event, and sets the word when all of that is queued. The kernel gives up after about 0.1 s.
"""

import ctypes
import time

from tests.cuda_calls import host_functions, kernels, launches

TIMEOUT_MS = 100
GIVEN_UP = 1  # what the kernel adds to the word when it gives up

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


def timings(count: int, us: int, launches_each: int = 1, *, new_kernels: bool = True) -> dict[str, float]:
    """Time kernels of `us` behind a delay kernel, `count` times, each time new ones.

    Returns the seconds that it took, how many delay kernels gave up, and the longest and shortest measured ms.
    """
    delay, kernel = kernels.load(f"await{TIMEOUT_MS}_5"), launches.kernel(us)
    for number in range(16):
        host_functions.set_word(number, 0)
    stream, given_up, measured, begun = launches.stream(), 0, list[float](), time.monotonic()
    for number in range(count):
        word, wanted = number % 16, 2 * number + 1
        if new_kernels:
            kernel = launches.kernel(us)
        host_functions.launch_waiting(delay, word, wanted, stream)
        first = launches.recorded(stream)
        for _ in range(launches_each):
            launches.launch(kernel, stream)
        last = launches.recorded(stream)
        given_up += host_functions.word(word) == wanted + GIVEN_UP
        host_functions.set_word(word, wanted)
        cuda.cuStreamSynchronize(P(stream))
        measured.append(launches.between(first, last))
    taken = time.monotonic() - begun
    return {"seconds": taken, "given_up": given_up, "longest_ms": max(measured), "shortest_ms": min(measured)}


def spin_beside_a_stream(count: int, us: int) -> float:
    """Seconds of `count` kernels that spin until a kernel of another stream, launched later, is done."""
    spin, kernel = kernels.load("await_5"), launches.kernel(us)
    spinning, other, begun = launches.stream(), launches.stream(), time.monotonic()
    for number in range(count):
        host_functions.launch_waiting(spin, 0, number + 1, spinning)
        launches.launch(kernel, other)
        host_functions.write(0, number + 1, other)
        cuda.cuStreamSynchronize(P(spinning))
    return time.monotonic() - begun


def launches_beside_an_endless_kernel(count: int, us: int) -> list[float]:
    """Seconds of each of `count` launches in another stream while a kernel spins, which ends only after them."""
    spin, kernel = kernels.load("await_5"), launches.kernel(us)
    spinning, other, taken = launches.stream(), launches.stream(), list[float]()
    host_functions.launch_waiting(spin, 0, 1, spinning)
    for _ in range(count):
        begun = time.monotonic()
        launches.launch(kernel, other)
        taken.append(time.monotonic() - begun)
    host_functions.set_word(0, 1)
    cuda.cuStreamSynchronize(P(spinning))
    return taken
