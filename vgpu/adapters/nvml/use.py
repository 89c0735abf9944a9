"""What a card does: its processes, sensors, and samples of its utilization."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pynvml

from vgpu.adapters.nvml.errors import NO_SAMPLES, UNANSWERABLE, ask_of_some, told
from vgpu.adapters.nvml.records import BusySamples, Reading
from vgpu.domain.identifiers import CardUuid


def processes(gpu: CardUuid) -> dict[int, int | None]:
    """Ask for the processes of every kind; one of two kinds is listed twice, each time with all of its memory."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    listed = _newest_form("ComputeRunningProcesses", handle)
    for kind in ("GraphicsRunningProcesses", "MPSComputeRunningProcesses"):
        listed += ask_of_some(partial(_newest_form, kind, handle))
    found: dict[int, int | None] = {}
    for process in listed:
        used = (found.get(process.pid), process.usedGpuMemory)
        found[int(process.pid)] = max((int(one) for one in used if one is not None), default=None)
    return found


def mps_clients(gpu: CardUuid) -> frozenset[int] | None:
    """Ask for the processes that are clients of MPS servers; None where the card or the driver does not tell."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    listed = told(partial(_newest_form, "MPSComputeRunningProcesses", handle))
    return None if listed is None else frozenset(int(process.pid) for process in listed)


def reading(gpu: CardUuid) -> Reading:
    """Ask for what the card's sensors and counters say."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    memory = _memory(handle)
    milliwatts = told(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    millijoules = told(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
    rates = told(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    return Reading(
        memory_total_bytes=int(memory.total) if memory else None,
        memory_used_bytes=int(memory.used) if memory else None,
        memory_free_bytes=int(memory.free) if memory else None,
        temperature_celsius=told(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        power_watts=None if milliwatts is None else milliwatts / 1000,
        energy_joules=None if millijoules is None else millijoules / 1000,
        utilization=rates.gpu / 100 if rates else None,
        memory_utilization=rates.memory / 100 if rates else None,
    )


def _memory(handle: Any) -> Any:
    """Ask for the card's memory. Drivers before 510 have the first form only, where their reserve counts as used."""
    found = told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2))
    return found or told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))


def gpu_percent(gpu: CardUuid) -> int:
    """Ask for the percent of the last sample period in which a kernel ran."""
    return int(pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByUUID(gpu)).gpu)


def busy_samples(gpu: CardUuid, since_us: int) -> BusySamples:
    """Ask for the samples of a card's utilization after a time, in microseconds since 1970."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    of_card = told(lambda: pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since_us)[1])
    of_processes = _process_samples(handle, since_us)
    return BusySamples(
        tuple((int(sample.timeStamp), sample.sampleValue.uiVal / 100) for sample in of_card or ()),
        tuple(
            (int(of_process.pid), int(of_process.timeStamp), of_process.smUtil / 100)
            for of_process in of_processes or ()
        ),
        _last_ends(of_process for of_process in of_processes or () if _is_busy(of_process)),
        names_processes=of_processes is not None,
    )


def _process_samples(handle: Any, since_us: int) -> list[Any] | None:
    """Return the samples of processes, none where no process was busy; None where the driver has no such samples."""
    try:
        return list(pynvml.nvmlDeviceGetProcessUtilization(handle, since_us))
    except pynvml.NVMLError as error:
        if error.value in NO_SAMPLES:
            return []
        if error.value in UNANSWERABLE:
            return None
        raise


def _is_busy(sample: Any) -> bool:
    return any((sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil))


def _last_ends(samples: Iterable[Any]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for sample in samples:
        ends[int(sample.pid)] = max(int(sample.timeStamp), ends.get(int(sample.pid), 0))
    return ends


def _newest_form(kind: str, handle: Any) -> list[Any]:
    """List processes by the newest form of a call that the driver has: drivers before 510 lack the third form.

    pynvml's form without a version raises another error than the driver's there.
    """
    try:
        return list(getattr(pynvml, f"nvmlDeviceGet{kind}_v3")(handle))
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return list(getattr(pynvml, f"nvmlDeviceGet{kind}_v2")(handle))
