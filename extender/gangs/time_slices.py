"""Does long work in slices of time, with a pause after each in which the verbs answer other calls."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vgpu.placement.gang_attempt import Steps

SLICE_S: Final = 0.01  # the work of one step comes on top: 1 ms, and 5 ms for a pod of 32 containers

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]


async def in_slices(steps: Steps[T], clock: Callable[[], float], pause: Pause) -> T:
    """Return the result of work that is done in steps. `clock` is monotonic, in seconds."""
    resumed = clock()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if clock() - resumed > SLICE_S:
            await pause(0)
            resumed = clock()
