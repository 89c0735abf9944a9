"""What the jobs in PyTorch share: the process group, the card of a rank, waiting for a step, and traces of kernels."""

import datetime as dt
import importlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.kernel_traces import torch_kernels
from benchmarks.card_jobs.seat import Seat

torch: Any = importlib.import_module("torch")  # not installed where types are checked
distributed: Any = importlib.import_module("torch.distributed")
profiler: Any = importlib.import_module("torch.profiler")

JOIN_S: Final = 60


def device_of(seat: Seat, card: int) -> Any:
    """Return the device of a card of the job, and make it the current one.

    A container that sees one card only has it as its first one.
    """
    if not seat.is_on_cards:
        return torch.device("cpu")
    device = torch.device("cuda", card % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def join(seat: Seat) -> Any:
    """Join the other ranks, and return the rank's device.

    Ranks meet in a file of the job's folder: no port can be taken by another program meanwhile.
    """
    device = device_of(seat, seat.card)
    distributed.init_process_group(
        seat.backend,
        init_method=f"file://{seat.folder / 'meeting'}",
        rank=seat.rank,
        world_size=seat.ranks,
        timeout=dt.timedelta(seconds=JOIN_S),
        device_id=device if seat.is_on_cards else None,
    )
    return device


def waits_for(device: Any) -> Callable[[], object]:
    """Return what waits for the end of all that is launched on a device's current stream until now."""
    if device.type == "cpu":
        return bool
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    wait: Callable[[], object] = event.synchronize
    return wait


def traced(run: Callable[[], None]) -> CardSpans:
    """Run a function under the profiler, and return the kernels of each card."""
    activities = profiler.ProfilerActivity
    with profiler.profile(activities=[activities.CUDA if torch.cuda.is_available() else activities.CPU]) as trace:
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        trace.export_chrome_trace(str(path))
        return torch_kernels(json.loads(path.read_text()))
