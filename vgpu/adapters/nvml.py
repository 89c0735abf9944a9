"""The cards of this machine, from NVML. No other module imports pynvml.

Every call may block for milliseconds, `wait_for_xid` for its whole timeout: call them from a thread.
https://docs.nvidia.com/deploy/nvml-api/
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pynvml

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
class Xid:
    """One error event of a card; `gpu` is None where the driver does not name the card.

    The codes: https://docs.nvidia.com/deploy/xid-errors/
    """

    gpu: str | None
    code: int


class Nvml:
    """One initialised NVML, with a subscription to the cards' XID errors."""

    def __init__(self) -> None:
        """Load the library; raises NvmlError where there is no driver."""
        with _translated():
            pynvml.nvmlInit()
            self._events = pynvml.nvmlEventSetCreate()
        self._subscribed: set[str] = set()
        self._asking = threading.Lock()
        self._waiting = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the calls in other threads, then close: NVML crashes where events are freed during a wait."""
        with self._asking, self._waiting, _translated():
            self._is_closed = True
            pynvml.nvmlEventSetFree(self._events)
            pynvml.nvmlShutdown()

    def driver_version(self) -> str:
        """Return the driver's version, `580.65.06`."""
        with _translated():
            return str(pynvml.nvmlSystemGetDriverVersion())

    def gpus(self) -> tuple[Gpu, ...]:
        """Return every card that answers, by index. A card that has fallen off the bus is not among them."""
        with self._asking, _translated():
            handles = list(_handles())
            return tuple(_gpu(index, handle, handles) for index, handle in handles)

    def fault(self, gpu: str) -> str:
        """Return what is wrong with a card now, in one word; empty where the card answers and needs no recovery."""
        with self._asking:
            try:
                handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
                pynvml.nvmlDeviceGetMemoryInfo(handle)
            except pynvml.NVMLError as error:
                return _word(error)
            return "RecoveryNeeded" if _ask(lambda: _recovery_action(handle), 0) else ""

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        """Wait for the next error of any card that `subscribe` was called for; return None after the timeout."""
        with self._waiting:
            if self._is_closed:
                raise NvmlError(pynvml.NVML_ERROR_UNINITIALIZED, "closed")
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, timeout_ms)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    return None
                raise NvmlError(error.value, str(error)) from error
            return Xid(_ask(lambda: str(pynvml.nvmlDeviceGetUUID(event.device)), None), int(event.eventData))

    def subscribe(self, gpu: str) -> bool:
        """Subscribe to a card's errors; return False where the card does not report them, so that it must be polled."""
        with self._asking:
            if gpu not in self._subscribed and _ask(lambda: self._register(gpu), False):
                self._subscribed.add(gpu)
            return gpu in self._subscribed

    def _register(self, gpu: str) -> bool:
        if self._is_closed:
            return False
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._events)
        return True


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pynvml.NVMLError as error:
        raise NvmlError(error.value, str(error)) from error


def _ask(question: Callable[[], T], default: T) -> T:
    try:
        return question()
    except pynvml.NVMLError:
        return default


def _word(error: pynvml.NVMLError) -> str:
    """Return `GpuIsLost` for `NVMLError_GpuIsLost`."""
    return type(error).__name__.removeprefix("NVMLError_")


def _handles() -> Iterator[tuple[int, Any]]:
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            pynvml.nvmlDeviceGetUUID(handle)
        except pynvml.NVMLError_GpuIsLost:
            continue
        yield index, handle


def _gpu(index: int, handle: Any, handles: list[tuple[int, Any]]) -> Gpu:
    card = Card(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        index=index,
        model=str(pynvml.nvmlDeviceGetName(handle)),
        memory_mib=_usable_bytes(handle) // MIB,
        numa_node=_numa_node(handle),
        nvlink_peers=tuple(_peers(handle, (other for each, other in handles if each != index))),
    )
    mig = _ask(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0], pynvml.NVML_DEVICE_MIG_DISABLE)
    minor = _ask(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), index)
    return Gpu(card, minor, mig_enabled=mig == pynvml.NVML_DEVICE_MIG_ENABLE)


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


def _peers(handle: Any, others: Iterator[Any]) -> Iterator[str]:
    for other in others:
        if _is_linked(handle, other):
            yield str(pynvml.nvmlDeviceGetUUID(other))


def _is_linked(handle: Any, other: Any) -> bool:
    link = pynvml.NVML_P2P_CAPS_INDEX_NVLINK
    return _ask(lambda: bool(pynvml.nvmlDeviceGetP2PStatus(handle, other, link) == pynvml.NVML_P2P_STATUS_OK), False)


def _recovery_action(handle: Any) -> int:
    """Return the recovery action that the card needs (`nvmlDeviceGpuRecoveryAction_t`); 0 is none."""
    field = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    return int(field.value.uiVal) if field.nvmlReturn == pynvml.NVML_SUCCESS else 0
