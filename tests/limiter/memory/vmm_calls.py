"""The functions of virtual memory management, for a process of tests/cuda_calls/session.py to load."""

import ctypes
from ctypes import c_size_t, c_uint64

cuda = ctypes.CDLL("libcuda.so.1")
PINNED = (1).to_bytes(4, "little")
ON_DEVICE_0 = PINNED + bytes(4) + (1).to_bytes(4, "little") + bytes(52)  # CUmemAllocationProp


def create(size: int) -> tuple[int, int]:
    """Result and handle."""
    handle = c_uint64()
    return cuda.cuMemCreate(ctypes.byref(handle), c_size_t(size), ON_DEVICE_0, c_uint64(0)), handle.value


def release(handle: int) -> int:
    return int(cuda.cuMemRelease(c_uint64(handle)))


def reserve(size: int) -> tuple[int, int]:
    """Result and address."""
    place = c_uint64()
    zero = c_uint64(0)
    return cuda.cuMemAddressReserve(ctypes.byref(place), c_size_t(size), zero, zero, zero), place.value


def map_memory(place: int, size: int, handle: int) -> int:
    zero = c_uint64(0)
    return int(cuda.cuMemMap(c_uint64(place), c_size_t(size), zero, c_uint64(handle), zero))


def unmap(place: int, size: int) -> int:
    return int(cuda.cuMemUnmap(c_uint64(place), c_size_t(size)))


def retain(place: int) -> tuple[int, int]:
    """Result and handle."""
    handle = c_uint64()
    return cuda.cuMemRetainAllocationHandle(ctypes.byref(handle), c_uint64(place)), handle.value
