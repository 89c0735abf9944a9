"""How long the busiest card of a job works on a step: its kernels, each collective counted by its shortest rank."""

from collections.abc import Iterable, Sequence

from benchmarks.gpu_time.kernel_times import covered

KernelSpan = tuple[float, float, bool]  # begin and end in us, and whether it is a collective
CardSpans = dict[str, list[KernelSpan]]  # by card


class UnknownBusyError(Exception):
    """Traces do not say how long the cards work; the message says why."""


def is_collective(name: str) -> bool:
    """Whether a kernel's name is one of NCCL's."""
    return "nccl" in name.lower()


def busiest_us(cards: Sequence[Sequence[KernelSpan]], steps: int) -> float:
    """Return for how many us of a step the busiest card works.

    Kernels that run at the same moment on a card count once. A collective is as long as the shortest of its ranks: the
    rest of its time on the other cards is waiting, at its begin. Raises UnknownBusyError where cards have different
    numbers of collectives, or no kernels.
    """
    ordered = [sorted((begin, end, is_together) for begin, end, is_together in spans) for spans in cards]
    if not ordered or not all(ordered):
        raise UnknownBusyError("a trace has no kernels")
    shortest = _shortest_collectives(ordered)
    return max(covered(_without_waiting(spans, shortest)) for spans in ordered) / steps


def _shortest_collectives(cards: Sequence[Sequence[KernelSpan]]) -> list[float]:
    each = [[end - begin for begin, end, is_together in spans if is_together] for spans in cards]
    if len({len(times) for times in each}) > 1:
        raise UnknownBusyError(f"collectives of the ranks: {', '.join(str(len(times)) for times in each)}")
    return [min(times) for times in zip(*each, strict=True)]


def _without_waiting(spans: Sequence[KernelSpan], shortest: Sequence[float]) -> Iterable[tuple[float, float]]:
    places = iter(shortest)
    return [(end - next(places), end) if is_together else (begin, end) for begin, end, is_together in spans]
