"""One initialised NVML, with a subscription to the cards' XID errors."""

import ctypes
import logging
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import pynvml

from vgpu.adapters.nvml import cards, faults, texts, use
from vgpu.adapters.nvml.errors import ask, hangs, translated
from vgpu.adapters.nvml.questions import Questions
from vgpu.adapters.nvml.records import BusySamples, Gpu, Reading, Xid
from vgpu.domain.errors import NvmlError
from vgpu.domain.identifiers import CardUuid

# What the driver answers to a process that initialised NVML before the driver was reloaded.
_RELOADED: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_TIMEOUT_S: Final = 10.0  # the first call to a card without persistence mode takes seconds

log = logging.getLogger(__name__)


class Nvml:
    """One initialised NVML, with a subscription to the cards' XID errors.

    A card that answers with an error, or not at all, affects no other card. NVML is initialised again after a reload of
    the driver.
    """

    def __init__(self, timeout_s: float = _TIMEOUT_S) -> None:
        """Load the library; raises NvmlError where there is no driver. Each call has `timeout_s` to answer."""
        self._questions = Questions(timeout_s)
        self._timeout_s = timeout_s
        self._waiting = threading.Lock()
        self._changing_events = threading.Lock()
        self._subscribed: dict[CardUuid, int] = {}  # the card's handle by UUID
        self._registering = 0  # calls that add a card to the set of events now
        self._is_closed = False
        with translated():
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
            if self._questions.is_any_running:
                return
            with translated():
                pynvml.nvmlEventSetFree(self._events)
                pynvml.nvmlShutdown()

    def driver_version(self) -> str:
        """Return the driver's version, `580.65.06`. Raises NvmlError."""
        return self._questions.one("version", partial(texts.text, pynvml.nvmlSystemGetDriverVersion))

    def gpus(self) -> tuple[Gpu, ...]:
        """Return every card that answers, by index. Raises NvmlError where the driver does not answer."""
        ask_each = self._questions.of_indices
        handles = ask_each("handle", {index: partial(cards.handle_at, index) for index in range(self._count())})
        gpus = ask_each("card", {index: partial(cards.read, index, handle) for index, (handle, _) in handles.items()})
        found = {index: handles[index] for index in gpus}
        peers = ask_each("peers", {index: partial(cards.linked, index, found) for index in found})
        return cards.sharing_memory(cards.with_peers(gpu, peers.get(index, ())) for index, gpu in sorted(gpus.items()))

    def processes(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, dict[int, int | None]]:
        """Return the processes that use each card: pid, and bytes of the card's memory, None where NVML does not tell.

        Cards that do not answer are left out. The pids are those of the calling process's pid namespace; processes of
        which it has no pid are left out.
        """
        return self._questions.of_gpus("processes", {gpu: partial(use.processes, gpu) for gpu in gpus})

    def mps_clients(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, frozenset[int]]:
        """Return the processes of each card that are clients of MPS servers; cards that do not tell are left out."""
        found = self._questions.of_gpus("mps_clients", {gpu: partial(use.mps_clients, gpu) for gpu in gpus})
        return {gpu: clients for gpu, clients in found.items() if clients is not None}

    def readings(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, Reading]:
        """Return what each card's sensors say; cards that do not answer are left out."""
        return self._questions.of_gpus("readings", {gpu: partial(use.reading, gpu) for gpu in gpus})

    def utilization(self, gpu: CardUuid) -> float | None:
        """Return the percent of the last sample period in which a kernel ran; None where the card does not answer."""
        try:
            return float(self._questions.one(("utilization", gpu), partial(use.gpu_percent, gpu)))
        except NvmlError:
            return None

    def busy_samples(self, since_us: Mapping[CardUuid, int]) -> dict[CardUuid, BusySamples]:
        """Return each card's samples after a time, in microseconds since 1970; cards that do not answer are left out.

        The driver keeps samples of about 20 s.
        """
        questions = {gpu: partial(use.busy_samples, gpu, since) for gpu, since in since_us.items()}
        return self._questions.of_gpus("busy", questions)

    def faults(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, str]:
        """Return what is wrong with each card now, in one word; empty where it answers and needs no recovery.

        A card that has not answered yet is left out until its call hangs: its answer comes with a later call of this.
        """
        found = self._questions.of_patient_gpus("fault", {gpu: partial(faults.fault, gpu) for gpu in gpus})
        return {
            gpu: str(answer).split(":", 1)[0] if isinstance(answer, NvmlError) else answer
            for gpu, answer in found.items()
        }

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        """Wait for the next error of any card that `subscribe` was called for; return None after the timeout.

        Raises NvmlError; pause before the next call then.
        """
        with self._waiting:
            if self._is_closed:
                raise NvmlError(pynvml.NVML_ERROR_UNINITIALIZED, "Uninitialized: closed")
            try:
                event = self._questions.one("wait", lambda: pynvml.nvmlEventSetWait_v2(self._events, timeout_ms))
            except NvmlError as error:
                if error.code == pynvml.NVML_ERROR_TIMEOUT and not self._questions.is_running("wait"):
                    return None
                if error.code == pynvml.NVML_ERROR_GPU_IS_LOST:
                    self.subscribe(self._questions.one("renew", self._renew_events))
                raise
            return Xid(self._uuid_of(event.device), int(event.eventData))

    def subscribe(self, gpus: Iterable[CardUuid]) -> frozenset[CardUuid]:
        """Subscribe to the cards' errors; return those that report them. The others must be polled."""
        asked = frozenset(gpus)
        if not self._is_closed:
            fresh = sorted(asked - self._subscribed.keys())
            self._questions.of_gpus("subscribe", {gpu: partial(self._register, gpu) for gpu in fresh})
        return asked & self._subscribed.keys()

    def _register(self, gpu: CardUuid) -> None:
        """Add a card to the set of events. Without the lock during the call, which may hang."""
        with self._changing_events:
            events = self._events
            self._registering += 1
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
        finally:
            with self._changing_events:
                self._registering -= 1
        with self._changing_events:
            if events is self._events:
                self._subscribed[gpu] = _address(handle)

    def _uuid_of(self, handle: Any) -> CardUuid | None:
        """Return the card of an event; a card that has fallen off the bus does not tell its UUID any more."""
        known = {address: gpu for gpu, address in list(self._subscribed.items())}
        return known.get(_address(handle)) or ask(lambda: CardUuid(str(pynvml.nvmlDeviceGetUUID(handle))), None)

    def _renew_events(self) -> list[CardUuid]:
        """Make an empty set of events, and return the cards of the old one.

        The wait for a set with a lost card reports no other event. A set to which a card is being added is not freed.
        """
        with self._changing_events:
            if not self._registering:
                pynvml.nvmlEventSetFree(self._events)
            self._events = pynvml.nvmlEventSetCreate()
            before, self._subscribed = self._subscribed, {}
        return sorted(before)

    def _count(self) -> int:
        if self._is_closed:
            raise NvmlError(pynvml.NVML_ERROR_UNINITIALIZED, "Uninitialized: closed")
        try:
            return int(self._questions.one("count", pynvml.nvmlDeviceGetCount))
        except NvmlError as error:
            if error.code not in _RELOADED:
                raise
        self._initialise_again()
        return int(self._questions.one("count", pynvml.nvmlDeviceGetCount))

    def _initialise_again(self) -> None:
        """Initialise NVML again after a reload of the driver. Raises NvmlError."""
        if not self._waiting.acquire(timeout=self._timeout_s):
            raise hangs("wait")
        try:
            if not self._questions.is_any_running:
                ask(pynvml.nvmlShutdown, None)
            self._questions.one("init", pynvml.nvmlInit)
            with self._changing_events:
                self._events = self._questions.one("events", pynvml.nvmlEventSetCreate)
                self._subscribed = {}
        finally:
            self._waiting.release()
        log.warning("the driver was reloaded; NVML is initialised again")


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
