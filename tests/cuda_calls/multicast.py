"""Multicast objects, by handle."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
U64 = ctypes.c_uint64


class Properties(ctypes.Structure):
    """CUmulticastObjectProp."""

    _fields_ = (
        ("devices", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("handle_types", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
    )


def create(size: int, devices: int = 1) -> tuple[int, int]:
    """Result and handle of cuMulticastCreate."""
    handle, wanted = U64(), Properties(devices, size)
    return cuda.cuMulticastCreate(ctypes.byref(handle), ctypes.byref(wanted)), handle.value


def granularity(option: int) -> int:
    """The minimum (option 0) or recommended (1) granularity."""
    size, wanted = ctypes.c_size_t(), Properties(1, 1 << 21)
    cuda.cuMulticastGetGranularity(ctypes.byref(size), ctypes.byref(wanted), option)
    return size.value


def add(handle: int, device: int) -> int:
    """Result of cuMulticastAddDevice."""
    return int(cuda.cuMulticastAddDevice(U64(handle), device))


def bind(handle: int, offset: int, memory: int, size: int) -> int:
    """Result of cuMulticastBindMem."""
    return int(cuda.cuMulticastBindMem(U64(handle), U64(offset), U64(memory), U64(), U64(size), U64()))


def bind_address(handle: int, offset: int, address: int, size: int) -> int:
    """Result of cuMulticastBindAddr."""
    return int(cuda.cuMulticastBindAddr(U64(handle), U64(offset), U64(address), U64(size), U64()))


def unbind(handle: int, device: int, offset: int, size: int) -> int:
    """Result of cuMulticastUnbind."""
    return int(cuda.cuMulticastUnbind(U64(handle), device, U64(offset), U64(size)))
