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


def spin_on_another_card(count: int, us: int, ahead_s: float) -> list[float]:
    """Seconds of each of `count` kernels on card 0 that spin until a kernel on card 1, launched later, is done.

    Before each, kernels are launched on card 1 for `ahead_s`, so that a share of it is used up.
    """
    contexts = [P(), P()]
    for device, context in enumerate(contexts):
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    taken = list[float]()
    cuda.cuCtxSetCurrent(contexts[0])
    spin, spinning = kernels.load("await_5"), launches.stream()
    cuda.cuCtxSetCurrent(contexts[1])
    kernel, other = launches.kernel(us), launches.stream()
    for number in range(count):
        launches.feed_one(kernel, us, ahead_s, other)
        begun = time.monotonic()
        cuda.cuCtxSetCurrent(contexts[0])
        host_functions.launch_waiting(spin, 0, number + 1, spinning)
        cuda.cuCtxSetCurrent(contexts[1])
        launches.launch(kernel, other)
        host_functions.write(0, number + 1, other)
        cuda.cuStreamSynchronize(P(other))
        cuda.cuCtxSetCurrent(contexts[0])
        cuda.cuStreamSynchronize(P(spinning))
        cuda.cuCtxSetCurrent(contexts[1])
        taken.append(time.monotonic() - begun)
    return taken


def feed_beside_spins(us: int, seconds: float, spin_s: float) -> float:
    """Share of the time that kernels took which were launched without waits, while kernels of another stream spin.

    Each spins for `spin_s`, so the card has work whenever a launch waits.
    """
    spin, kernel = kernels.load("await_5"), launches.kernel(us)
    spinning, other = launches.stream(), launches.stream()
    host_functions.set_word(0, 0)
    count, number, begun, due = 0, 0, time.monotonic(), 0.0
    while (now := time.monotonic()) < begun + seconds:
        if now > due:
            host_functions.set_word(0, number)
            number, due = number + 1, now + spin_s
            host_functions.launch_waiting(spin, 0, number, spinning)
        launches.launch(kernel, other)
        count += 1
    host_functions.set_word(0, number)
    cuda.cuCtxSynchronize()
    return count * us / 1e6 / (time.monotonic() - begun)


def feed_beside_a_spin_on_another_card(us: int, seconds: float) -> float:
    """Share of card 1's time that kernels took which were launched without waits, while a kernel spins on card 0."""
    contexts = [P(), P()]
    for device, context in enumerate(contexts):
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(contexts[0])
    spin, spinning = kernels.load("await_5"), launches.stream()
    host_functions.set_word(0, 0)
    cuda.cuCtxSetCurrent(contexts[1])
    kernel, other = launches.kernel(us), launches.stream()
    count, number, begun, due = 0, 0, time.monotonic(), 0.0
    while (now := time.monotonic()) < begun + seconds:
        if now > due:
            host_functions.set_word(0, number)
            number, due = number + 1, now + 0.2
            cuda.cuCtxSetCurrent(contexts[0])
            host_functions.launch_waiting(spin, 0, number, spinning)
            cuda.cuCtxSetCurrent(contexts[1])
        launches.launch(kernel, other)
        count += 1
    host_functions.set_word(0, number)
    cuda.cuStreamSynchronize(P(other))
    return count * us / 1e6 / (time.monotonic() - begun)


def feed_new(us: int, seconds: float) -> float:
    """Share of the time that kernels took of which each is launched once."""
    stream, count, begun = launches.stream(), 0, time.monotonic()
    while time.monotonic() < begun + seconds:
        launches.launch(launches.kernel(us), stream)
        count += 1
    cuda.cuStreamSynchronize(P(stream))
    return count * us / 1e6 / (time.monotonic() - begun)
