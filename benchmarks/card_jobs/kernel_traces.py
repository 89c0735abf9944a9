"""Reads the kernels of each card from the traces of PyTorch's and JAX's profilers."""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.card_jobs.kernel_spans import CardSpans, is_collective

CARD: Final = "/device:GPU:"
STREAM: Final = "Stream #"
COPIES: Final = ("Memcpy", "Memset")


def torch_kernels(trace: Mapping[str, Any]) -> CardSpans:
    """Return the kernels of each card in a trace of the profiler; no copies, no ranges that the program has named."""
    found: CardSpans = {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            span = (event["ts"], event["ts"] + event["dur"], is_collective(event["name"]))
            found.setdefault(str(event["args"]["device"]), []).append(span)
    return found


def jax_kernels(trace: Mapping[str, Any]) -> CardSpans:
    """Return the kernels of each card in a trace of JAX: what its streams have, without copies."""
    cards: dict[int, str] = {}
    streams: set[tuple[int, int]] = set()
    for event in trace["traceEvents"]:
        name = event.get("args", {}).get("name", "")
        if event.get("name") == "process_name" and name.startswith(CARD):
            cards[event["pid"]] = name
        if event.get("name") == "thread_name" and name.startswith(STREAM):
            streams.add((event["pid"], event["tid"]))
    found: CardSpans = {}
    for event in trace["traceEvents"]:
        is_on_stream = event.get("ph") == "X" and (event["pid"], event["tid"]) in streams and event["pid"] in cards
        if is_on_stream and not event["name"].startswith(COPIES):
            span = (event["ts"], event["ts"] + event["dur"], is_collective(event["name"]))
            found.setdefault(cards[event["pid"]], []).append(span)
    return found
