"""Asks NVML with a limit of time: a card that hangs or answers with an error affects no other card."""

import logging
from collections.abc import Callable, Hashable, Mapping
from typing import Final, TypeVar

from vgpu.adapters.bounded_calls import BoundedCalls
from vgpu.adapters.nvml.errors import nvml_error
from vgpu.domain.errors import NvmlError
from vgpu.domain.identifiers import CardUuid

T = TypeVar("T")

_NEXT_S: Final = 1.0  # a card that has not answered this long after the others is not waited for

log = logging.getLogger(__name__)


class Questions:
    """Calls of NVML, each in a thread of its own; a call that hangs is not made again until it has returned."""

    def __init__(self, timeout_s: float) -> None:
        """Each call has `timeout_s` to answer."""
        self._calls = BoundedCalls(timeout_s, next_s=min(_NEXT_S, timeout_s))
        self._complaints: dict[tuple[str, int], str] = {}

    @property
    def is_any_running(self) -> bool:
        """Whether a call has not returned, after its time too."""
        return self._calls.is_any_running

    def is_running(self, key: Hashable) -> bool:
        """Whether the last call of a key has not returned."""
        return self._calls.is_running(key)

    def one(self, key: Hashable, question: Callable[[], T]) -> T:
        """Return one answer. Raises NvmlError, with the code NVML_ERROR_TIMEOUT where the call hangs."""
        answer = self._calls.ask({key: question})[key]
        if isinstance(answer, Exception):
            raise nvml_error(answer, key)
        return answer

    def of_gpus(self, kind: str, questions: Mapping[CardUuid, Callable[[], T]]) -> dict[CardUuid, T]:
        """Return the answers by card; cards that do not answer are left out."""
        answers = self._calls.ask({(kind, gpu): question for gpu, question in questions.items()})
        found: dict[CardUuid, T] = {}
        for (_, gpu), answer in answers.items():
            if isinstance(answer, Exception):
                log.debug("%s of card %s: %s", kind, gpu, nvml_error(answer, gpu))
            else:
                found[gpu] = answer
        return found

    def of_patient_gpus(
        self, kind: str, questions: Mapping[CardUuid, Callable[[], T]]
    ) -> dict[CardUuid, T | NvmlError]:
        """Return the answers or errors by card.

        A card is left out while its call takes longer than those of the others, but is not known to hang. The late
        answer is returned by a later call of this.
        """
        answers = self._calls.ask_patiently({(kind, gpu): question for gpu, question in questions.items()})
        return {
            gpu: nvml_error(answer, (kind, gpu)) if isinstance(answer, Exception) else answer
            for (_, gpu), answer in answers.items()
        }

    def of_indices(self, kind: str, questions: Mapping[int, Callable[[], T]]) -> dict[int, T]:
        """Return the answers by index; cards that do not answer are logged and left out."""
        answers = self._calls.ask({(kind, index): question for index, question in questions.items()})
        found: dict[int, T] = {}
        for (_, index), answer in answers.items():
            error = nvml_error(answer, (kind, index)) if isinstance(answer, Exception) else None
            self._complain(kind, index, str(error or ""))
            if not isinstance(answer, Exception):
                found[index] = answer
        return found

    def _complain(self, kind: str, index: int, complaint: str) -> None:
        if complaint != self._complaints.get((kind, index), ""):
            log.warning("card %d: %s: %s", index, kind, complaint or "answers again")
        self._complaints[kind, index] = complaint
