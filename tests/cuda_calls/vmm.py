"""Physical memory by handle."""

import ctypes

MIB = 1 << 20
POSIX_FD = 1
U64_ZERO = ctypes.c_uint64()

cuda = ctypes.CDLL("libcuda.so.1")


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int * 2),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


def create(size: int, *, handle_types: int = 0, usage: int = 0, device: int = 0) -> tuple[int, int]:
    """Result and handle of cuMemCreate."""
    handle = ctypes.c_uint64()
    flags = (ctypes.c_ubyte * 8)(0, 0, usage)
    properties = Properties(1, handle_types, (ctypes.c_int * 2)(1, device), None, flags)
    result = cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), U64_ZERO)
    return result, handle.value


def release(handle: int) -> int:
    """Result of cuMemRelease."""
    return int(cuda.cuMemRelease(ctypes.c_uint64(handle)))


def mapped(handle: int, size: int) -> int:
    """Address to which the handle's memory is mapped."""
    address, length = ctypes.c_uint64(), ctypes.c_size_t(size)
    cuda.cuMemAddressReserve(ctypes.byref(address), length, U64_ZERO, U64_ZERO, U64_ZERO)
    cuda.cuMemMap(address, length, U64_ZERO, ctypes.c_uint64(handle), U64_ZERO)
    return address.value


def allow(address: int, size: int, device: int = 0) -> int:
    """Result of cuMemSetAccess: read and write by a device."""
    access = (ctypes.c_int * 3)(1, device, 3)  # CUmemAccessDesc
    return int(cuda.cuMemSetAccess(ctypes.c_uint64(address), ctypes.c_size_t(size), access, ctypes.c_size_t(1)))


def unmap(address: int, size: int) -> int:
    """Result of cuMemUnmap."""
    return int(cuda.cuMemUnmap(ctypes.c_uint64(address), ctypes.c_size_t(size)))


def export(handle: int) -> tuple[int, int]:
    """Result and file descriptor of cuMemExportToShareableHandle."""
    descriptor = ctypes.c_int(-1)
    result = cuda.cuMemExportToShareableHandle(ctypes.byref(descriptor), ctypes.c_uint64(handle), POSIX_FD, U64_ZERO)
    return result, descriptor.value


def take(descriptor: int) -> tuple[int, int]:
    """Result and handle of cuMemImportFromShareableHandle."""
    handle = ctypes.c_uint64()
    result = cuda.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(descriptor), POSIX_FD)
    return result, handle.value
