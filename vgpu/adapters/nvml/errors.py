"""NVML's errors, and the answers of cards, drivers and libraries that do not know a question."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pynvml

from vgpu.domain.errors import NvmlError

T = TypeVar("T")

# Errors of a device, driver or library that is too old for a query: the answer is then a default.
UNANSWERABLE: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)

NO_SAMPLES: Final = frozenset({pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND})  # pynvml raises the first, too


def nvml_error(error: Exception, key: Hashable) -> NvmlError:
    """Translate the exception of a call; raises it where it is not the driver's."""
    if isinstance(error, pynvml.NVMLError):
        return NvmlError(error.value, f"{_word(error)}: {_description(error)}")
    if isinstance(error, TimeoutError):
        return hangs(key)
    if isinstance(error, ValueError):
        return NvmlError(pynvml.NVML_ERROR_UNKNOWN, f"Unreadable: {error}")
    raise error


def hangs(key: Hashable) -> NvmlError:
    """Return the error of a call that has not returned in its time."""
    return NvmlError(pynvml.NVML_ERROR_TIMEOUT, f"NotAnswering: the call {key} has not returned")


@contextmanager
def translated() -> Iterator[None]:
    """Raise NvmlError for pynvml's errors inside the block."""
    try:
        yield
    except pynvml.NVMLError as error:
        raise NvmlError(error.value, f"{_word(error)}: {_description(error)}") from error


def _word(error: pynvml.NVMLError) -> str:
    """Return `GpuIsLost` for `NVMLError_GpuIsLost`."""
    return type(error).__name__.removeprefix("NVMLError_")


def _description(error: pynvml.NVMLError) -> str:
    """Return the text of an error; pynvml asks the driver for that of a code that pynvml does not know."""
    try:
        return str(error)
    except UnicodeError:
        return f"error {error.value}"


def ask(question: Callable[[], T], default: T) -> T:
    """Return an answer; the default after any error."""
    try:
        return question()
    except pynvml.NVMLError:
        return default


def told(question: Callable[[], T]) -> T | None:
    """Return an answer; None where the card or the driver does not know the question, or has nothing to say."""
    try:
        return question()
    except pynvml.NVMLError as error:
        if error.value in UNANSWERABLE or error.value in NO_SAMPLES:
            return None
        raise


def ask_of_some(question: Callable[[], list[Any]]) -> list[Any]:
    """Return an answer; nothing where the card or the driver does not know the question."""
    try:
        return question()
    except pynvml.NVMLError as error:
        if error.value in UNANSWERABLE:
            return []
        raise
