"""The cards of this machine, from NVML. No other module imports pynvml.

Every call may block for milliseconds, `wait_for_xid` for its whole timeout, and any call for the timeout of a card that
hangs: call them from a thread.
https://docs.nvidia.com/deploy/nvml-api/
"""

import ctypes
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pynvml

from vgpu.adapters.bounded_calls import BoundedCalls
from vgpu.device import Card
from vgpu.errors import NvmlError
from vgpu.quantity import MIB

T = TypeVar("T")

# Errors of a device, driver or library that is too old for a query: the answer is then a default.
_UNANSWERABLE: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)

# What the driver answers to a process that initialised NVML before the driver was reloaded.
_RELOADED: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_NO_SAMPLES: Final = frozenset({pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND})  # pynvml raises the first, too
_TIMEOUT_S: Final = 10.0  # the first call to a card without persistence mode takes seconds

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card with what only its own node uses.

    Attributes:
        card: what the GPUNode reports.
        minor: the number of the device node, `/dev/nvidia<minor>`.
        mig_enabled: the hardware divides the card (MIG), so that it cannot be shared by vgpushare.
    """

    card: Card
    minor: int
    mig_enabled: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a card's sensors and counters say; None where the card does not tell.

    Attributes:
        memory_total_bytes: all of the card's memory, with what the driver reserves.
        memory_used_bytes: memory in use, with what the driver reserves.
        temperature_celsius: of the GPU.
        power_watts: drawn now.
        energy_joules: used since the driver was loaded.
        utilization: share of the last sample period (1/6 s to 1 s) in which a kernel ran, 0 to 1.
        memory_utilization: share of that period in which memory was read or written, 0 to 1.
    """

    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    energy_joules: float | None = None
    utilization: float | None = None
    memory_utilization: float | None = None


@dataclass(frozen=True, slots=True)
class BusySamples:
    """NVML's samples of a card's utilization since an earlier one.

    Attributes:
        card: end of each sample in microseconds since 1970, and the share of the time since the sample before in which
            a kernel ran, 0 to 1.
        processes: the same for each process: pid, end of the sample, share.
        active: end of the last sample in which any engine was busy, by pid: kernels, memory, video encoder or decoder.
        names_processes: whether the driver has samples of processes at all.
    """

    card: tuple[tuple[int, float], ...] = ()
    processes: tuple[tuple[int, int, float], ...] = ()
    active: Mapping[int, int] = field(default_factory=dict)
    names_processes: bool = True


@dataclass(frozen=True, slots=True)
class Xid:
    """One error event of a card; `gpu` is None where the driver does not name the card.

    The codes: https://docs.nvidia.com/deploy/xid-errors/
    """

    gpu: str | None
    code: int


class Nvml:
    """One initialised NVML, with a subscription to the cards' XID errors.

    A card that answers with an error, or not at all, affects no other card. NVML is initialised again after a reload of
    the driver.
    """

    def __init__(self, timeout_s: float = _TIMEOUT_S) -> None:
        """Load the library; raises NvmlError where there is no driver. Each call has `timeout_s` to answer."""
        self._calls = BoundedCalls(timeout_s)
        self._timeout_s = timeout_s
        self._waiting = threading.Lock()
        self._changing_events = threading.Lock()
        self._subscribed: dict[str, int] = {}  # the card's handle by UUID
        self._complaints: dict[tuple[str, int], str] = {}
        self._is_closed = False
        with _translated():
            pynvml.nvmlInit()
            self._events = pynvml.nvmlEventSetCreate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the event wait of another thread, then close: NVML crashes where events are freed during a wait.

        While a call hangs, nothing is closed.
        """
        self._is_closed = True
        with self._waiting:
            if self._calls.is_any_running:
                return
            with _translated():
                pynvml.nvmlEventSetFree(self._events)
                pynvml.nvmlShutdown()

    def driver_version(self) -> str:
        """Return the driver's version, `580.65.06`. Raises NvmlError."""
        return str(self._one("version", pynvml.nvmlSystemGetDriverVersion))

    def gpus(self) -> tuple[Gpu, ...]:
        """Return every card that answers, by index. Raises NvmlError where the driver does not answer."""
        handles = self._of_cards("handle", {index: partial(_handle, index) for index in range(self._count())})
        gpus = self._of_cards("card", {index: partial(_gpu, index, each) for index, (each, _) in handles.items()})
        linked = {index: handles[index] for index in gpus}
        peers = self._of_cards("peers", {index: partial(_peers, index, linked) for index in linked})
        return tuple(_with_peers(gpu, peers.get(index, ())) for index, gpu in sorted(gpus.items()))

    def processes(self, gpus: Iterable[str]) -> dict[str, dict[int, int | None]]:
        """Return the processes that use each card: pid, and bytes of the card's memory, None where NVML does not tell.

        Cards that do not answer are left out. The pids are those of the calling process's pid namespace; processes of
        which it has no pid are left out.
        """
        return self._answered("processes", {gpu: partial(_processes, gpu) for gpu in gpus})

    def readings(self, gpus: Iterable[str]) -> dict[str, Reading]:
        """Return what each card's sensors say; cards that do not answer are left out."""
        return self._answered("readings", {gpu: partial(_reading, gpu) for gpu in gpus})

    def utilization(self, gpu: str) -> float | None:
        """Return the percent of the last sample period in which a kernel ran; None where the card does not answer."""
        try:
            return float(self._one(("utilization", gpu), partial(_gpu_percent, gpu)))
        except NvmlError:
            return None

    def busy_samples(self, since_us: Mapping[str, int]) -> dict[str, BusySamples]:
        """Return each card's samples after a time, in microseconds since 1970; cards that do not answer are left out.

        The driver keeps samples of about 20 s.
        """
        return self._answered("busy", {gpu: partial(_busy_samples, gpu, since) for gpu, since in since_us.items()})

    def fault(self, gpu: str) -> str:
        """Return what is wrong with a card now, in one word; empty where the card answers and needs no recovery."""
        try:
            return self._one(("fault", gpu), partial(_fault, gpu))
        except NvmlError as error:
            return str(error).split(":", 1)[0]

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        """Wait for the next error of any card that `subscribe` was called for; return None after the timeout.

        Raises NvmlError; pause before the next call then.
        """
        with self._waiting:
            if self._is_closed:
                raise NvmlError(pynvml.NVML_ERROR_UNINITIALIZED, "Uninitialized: closed")
            try:
                event = self._one("wait", lambda: pynvml.nvmlEventSetWait_v2(self._events, timeout_ms))
            except NvmlError as error:
                if error.code == pynvml.NVML_ERROR_TIMEOUT and not self._calls.is_running("wait"):
                    return None
                if error.code == pynvml.NVML_ERROR_GPU_IS_LOST:
                    self._one("renew", self._renew_events)
                raise
            return Xid(self._uuid_of(event.device), int(event.eventData))

    def subscribe(self, gpu: str) -> bool:
        """Subscribe to a card's errors; return False where the card does not report them, so that it must be polled."""
        if gpu not in self._subscribed and not self._is_closed:
            with suppress(NvmlError):
                self._one(("subscribe", gpu), partial(self._register, gpu))
        return gpu in self._subscribed

    def _register(self, gpu: str) -> None:
        with self._changing_events:
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._events)
            self._subscribed[gpu] = _address(handle)

    def _uuid_of(self, handle: Any) -> str | None:
        """Return the card of an event; a card that has fallen off the bus does not tell its UUID any more."""
        known = {address: gpu for gpu, address in list(self._subscribed.items())}
        return known.get(_address(handle)) or _ask(lambda: str(pynvml.nvmlDeviceGetUUID(handle)), None)

    def _renew_events(self) -> None:
        """Make a set of events without the lost card: the wait for a set with a lost card reports no other event."""
        with self._changing_events:
            pynvml.nvmlEventSetFree(self._events)
            self._events = pynvml.nvmlEventSetCreate()
            before, self._subscribed = self._subscribed, {}
        for gpu in sorted(before):
            _ask(partial(self._register, gpu), None)

    def _count(self) -> int:
        if self._is_closed:
            raise NvmlError(pynvml.NVML_ERROR_UNINITIALIZED, "Uninitialized: closed")
        try:
            return int(self._one("count", pynvml.nvmlDeviceGetCount))
        except NvmlError as error:
            if error.code not in _RELOADED:
                raise
        self._initialise_again()
        return int(self._one("count", pynvml.nvmlDeviceGetCount))

    def _initialise_again(self) -> None:
        """Initialise NVML again after a reload of the driver. Raises NvmlError."""
        if not self._waiting.acquire(timeout=self._timeout_s):
            raise _hangs("wait")
        try:
            if not self._calls.is_any_running:
                _ask(pynvml.nvmlShutdown, None)
            self._one("init", pynvml.nvmlInit)
            with self._changing_events:
                self._events = self._one("events", pynvml.nvmlEventSetCreate)
                self._subscribed = {}
        finally:
            self._waiting.release()
        log.warning("the driver was reloaded; NVML is initialised again")

    def _one(self, key: Hashable, question: Callable[[], T]) -> T:
        """Return one answer. Raises NvmlError, with the code NVML_ERROR_TIMEOUT where the call hangs."""
        answer = self._calls.ask({key: question})[key]
        if isinstance(answer, Exception):
            raise _nvml_error(answer, key)
        return answer

    def _answered(self, kind: str, questions: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Return the answers by card; cards that do not answer are left out."""
        answers = self._calls.ask({(kind, gpu): question for gpu, question in questions.items()})
        found: dict[str, T] = {}
        for (_, gpu), answer in answers.items():
            if isinstance(answer, Exception):
                log.debug("%s of card %s: %s", kind, gpu, _nvml_error(answer, gpu))
            else:
                found[gpu] = answer
        return found

    def _of_cards(self, kind: str, questions: Mapping[int, Callable[[], T]]) -> dict[int, T]:
        """Return the answers by index; cards that do not answer are logged and left out."""
        answers = self._calls.ask({(kind, index): question for index, question in questions.items()})
        found: dict[int, T] = {}
        for (_, index), answer in answers.items():
            error = _nvml_error(answer, (kind, index)) if isinstance(answer, Exception) else None
            self._complain(kind, index, str(error or ""))
            if not isinstance(answer, Exception):
                found[index] = answer
        return found

    def _complain(self, kind: str, index: int, complaint: str) -> None:
        if complaint != self._complaints.get((kind, index), ""):
            log.warning("card %d: %s: %s", index, kind, complaint or "answers again")
        self._complaints[kind, index] = complaint


def _nvml_error(error: Exception, key: Hashable) -> NvmlError:
    """Translate the exception of a call; raises it where it is not the driver's."""
    if isinstance(error, pynvml.NVMLError):
        return NvmlError(error.value, f"{_word(error)}: {error}")
    if isinstance(error, TimeoutError):
        return _hangs(key)
    raise error


def _hangs(key: Hashable) -> NvmlError:
    return NvmlError(pynvml.NVML_ERROR_TIMEOUT, f"NotAnswering: the call {key} has not returned")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pynvml.NVMLError as error:
        raise NvmlError(error.value, f"{_word(error)}: {error}") from error


def _ask(question: Callable[[], T], default: T) -> T:
    try:
        return question()
    except pynvml.NVMLError:
        return default


def _word(error: pynvml.NVMLError) -> str:
    """Return `GpuIsLost` for `NVMLError_GpuIsLost`."""
    return type(error).__name__.removeprefix("NVMLError_")


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _handle(index: int) -> tuple[Any, str]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return handle, str(pynvml.nvmlDeviceGetUUID(handle))


def _gpu(index: int, handle: Any) -> Gpu:
    """Read a card without its peers, which are asked for apart: the query for a pair may fail because of the other."""
    card = Card(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        index=index,
        model=str(pynvml.nvmlDeviceGetName(handle)),
        memory_mib=_usable_bytes(handle) // MIB,
        numa_node=_numa_node(handle),
        nvlink_peers=(),
    )
    mig = _ask(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0], pynvml.NVML_DEVICE_MIG_DISABLE)
    minor = _ask(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), index)
    return Gpu(card, minor, mig_enabled=mig == pynvml.NVML_DEVICE_MIG_ENABLE)


def _with_peers(gpu: Gpu, peers: tuple[str, ...]) -> Gpu:
    return replace(gpu, card=replace(gpu.card, nvlink_peers=peers))


def _fault(gpu: str) -> str:
    """Ask what `gpus` needs of a card, and whether the card needs recovery."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    pynvml.nvmlDeviceGetUUID(handle)
    pynvml.nvmlDeviceGetName(handle)
    pynvml.nvmlDeviceGetMemoryInfo(handle)
    if _ask(lambda: _recovery_action(handle), 0):
        return "RecoveryNeeded"
    return _memory_fault(handle)


def _memory_fault(handle: Any) -> str:
    """Return what the card's memory has lost; uncorrectable errors with their number since the last reset.

    A remapping that is pending, or that has failed, and pages that wait for their retirement, need a reset.
    """
    remapped = _told(lambda: pynvml.nvmlDeviceGetRemappedRows(handle))
    if remapped and remapped[3]:
        return "RowRemapFailed"
    if remapped and remapped[2]:
        return "RowRemapPending"
    kinds = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    errors = _told(lambda: pynvml.nvmlDeviceGetTotalEccErrors(handle, *kinds))
    return f"UncorrectableEcc{errors}" if errors else ""


def _processes(gpu: str) -> dict[int, int | None]:
    """Ask for the processes of every kind; one of two kinds is listed twice, each time with all of its memory."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    listed = _newest_form("ComputeRunningProcesses", handle)
    for kind in ("GraphicsRunningProcesses", "MPSComputeRunningProcesses"):
        listed += _ask_of_some(partial(_newest_form, kind, handle))
    found: dict[int, int | None] = {}
    for each in listed:
        used = (found.get(each.pid), each.usedGpuMemory)
        found[int(each.pid)] = max((int(one) for one in used if one is not None), default=None)
    return found


def _reading(gpu: str) -> Reading:
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    memory = _told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    milliwatts = _told(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    millijoules = _told(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
    rates = _told(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    return Reading(
        memory_total_bytes=int(memory.total) if memory else None,
        memory_used_bytes=int(memory.used) if memory else None,
        temperature_celsius=_told(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        power_watts=None if milliwatts is None else milliwatts / 1000,
        energy_joules=None if millijoules is None else millijoules / 1000,
        utilization=rates.gpu / 100 if rates else None,
        memory_utilization=rates.memory / 100 if rates else None,
    )


def _gpu_percent(gpu: str) -> int:
    return int(pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByUUID(gpu)).gpu)


def _busy_samples(gpu: str, since_us: int) -> BusySamples:
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    of_card = _told(lambda: pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since_us)[1])
    of_processes = _process_samples(handle, since_us)
    return BusySamples(
        tuple((int(each.timeStamp), each.sampleValue.uiVal / 100) for each in of_card or ()),
        tuple((int(each.pid), int(each.timeStamp), each.smUtil / 100) for each in of_processes or ()),
        _last_ends(each for each in of_processes or () if _is_busy(each)),
        names_processes=of_processes is not None,
    )


def _process_samples(handle: Any, since_us: int) -> list[Any] | None:
    """Return the samples of processes, none where no process was busy; None where the driver has no such samples."""
    try:
        return list(pynvml.nvmlDeviceGetProcessUtilization(handle, since_us))
    except pynvml.NVMLError as error:
        if error.value in _NO_SAMPLES:
            return []
        if error.value in _UNANSWERABLE:
            return None
        raise


def _is_busy(sample: Any) -> bool:
    return any((sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil))


def _last_ends(samples: Iterable[Any]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for each in samples:
        ends[int(each.pid)] = max(int(each.timeStamp), ends.get(int(each.pid), 0))
    return ends


def _told(question: Callable[[], T]) -> T | None:
    """Return an answer; None where the card or the driver does not know the question, or has nothing to say."""
    try:
        return question()
    except pynvml.NVMLError as error:
        if error.value in _UNANSWERABLE or error.value in _NO_SAMPLES:
            return None
        raise


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


def _ask_of_some(question: Callable[[], list[Any]]) -> list[Any]:
    """Return an answer; nothing where the card or the driver does not know the question."""
    try:
        return question()
    except pynvml.NVMLError as error:
        if error.value in _UNANSWERABLE:
            return []
        raise


def _usable_bytes(handle: Any) -> int:
    """Return the total without what the driver reserves; drivers before 510 do not report the reserve."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in _UNANSWERABLE:
            raise
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    return int(memory.total - memory.reserved)


def _numa_node(handle: Any) -> int:
    """Return the lowest NUMA node whose memory is near the card; -1 where it is not known."""
    near = _ask(lambda: int(pynvml.nvmlDeviceGetMemoryAffinity(handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)[0]), 0)
    return (near & -near).bit_length() - 1


def _peers(index: int, handles: Mapping[int, tuple[Any, str]]) -> tuple[str, ...]:
    handle = handles[index][0]
    return tuple(uuid for each, (other, uuid) in handles.items() if each != index and _is_linked(handle, other))


def _is_linked(handle: Any, other: Any) -> bool:
    link = pynvml.NVML_P2P_CAPS_INDEX_NVLINK
    return _ask(lambda: bool(pynvml.nvmlDeviceGetP2PStatus(handle, other, link) == pynvml.NVML_P2P_STATUS_OK), False)


def _recovery_action(handle: Any) -> int:
    """Return the recovery action that the card needs (`nvmlDeviceGpuRecoveryAction_t`); 0 is none."""
    field = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    return int(field.value.uiVal) if field.nvmlReturn == pynvml.NVML_SUCCESS else 0
