"""Texts of NVML: cards and drivers return bytes, which are shown whatever they are.

pynvml decodes texts strictly, so that a single byte that is not UTF-8 raises UnicodeDecodeError.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

import pynvml

from vgpu.adapters.nvml.errors import told
from vgpu.domain import printable

MAX_TEXT: Final = 96  # characters: NVML_DEVICE_NAME_V2_BUFFER_SIZE, the longest text that is read
NAMELESS: Final = "NVIDIA GPU"  # the model of a card that does not tell its name


def model(handle: Any) -> str:
    """Return a card's name; `NAMELESS` where the card has none, or does not tell it."""
    return told(lambda: text(pynvml.nvmlDeviceGetName, handle)) or NAMELESS


def text(question: Callable[..., Any], *arguments: Any) -> str:
    """Ask for a text: at most 96 printable characters, with U+FFFD for each byte that is not UTF-8."""
    undecoded = inspect.unwrap(question)
    return shown(undecoded(*arguments))


def shown(answer: bytes | str) -> str:
    """Return a text as it is shown: bounded, with replacement characters, and `?` for what cannot be printed."""
    decoded = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return printable.line(decoded[:MAX_TEXT]).strip()
