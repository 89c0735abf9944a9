"""Loads NVML from a place where the loader does not look."""

import ctypes
from pathlib import Path

import pynvml

from vgpu.domain.errors import NvmlError


def load(path: Path) -> None:
    """Load NVML from a file: whoever then asks for its SONAME, as pynvml does, gets this one. Raises NvmlError."""
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        raise NvmlError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, f"LibraryNotFound: {error}") from error
