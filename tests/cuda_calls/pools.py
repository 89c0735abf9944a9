"""Memory pools, by handle."""

import ctypes

from tests.cuda_calls.ipc import Handle

POSIX_FD = 1
PINNED, MANAGED = 1, 2  # CU_MEM_ALLOCATION_TYPE_*
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8  # CU_MEMPOOL_ATTR_*

cuda = ctypes.CDLL("libcuda.so.1")


class Properties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int * 2),
        ("windows", ctypes.c_void_p),
        ("max_size", ctypes.c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    )


def create(*, handle_types: int = 0, device: int = 0, most: int = 0, kind: int = PINNED) -> tuple[int, int]:
    """Result and handle of cuMemPoolCreate."""
    pool, properties = ctypes.c_void_p(), Properties(kind, handle_types, (ctypes.c_int * 2)(1, device), None, most)
    result = cuda.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(properties))
    return result, pool.value or 0


def alloc(size: int, pool: int) -> tuple[int, int]:
    """Result and pointer of cuMemAllocFromPoolAsync."""
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAllocFromPoolAsync(ctypes.byref(pointer), ctypes.c_size_t(size), ctypes.c_void_p(pool), None)
    return result, pointer.value


def of_device(function: str = "cuDeviceGetMemPool", device: int = 0) -> int:
    """The device's pool by that function."""
    pool = ctypes.c_void_p()
    cuda[function](ctypes.byref(pool), device)
    return pool.value or 0


def read(pool: int, attribute: int) -> int:
    """Value of an attribute by cuMemPoolGetAttribute."""
    value = ctypes.c_uint64()
    cuda.cuMemPoolGetAttribute(ctypes.c_void_p(pool), attribute, ctypes.byref(value))
    return value.value


def write(pool: int, attribute: int, value: int) -> int:
    """Result of cuMemPoolSetAttribute."""
    number = ctypes.c_uint64(value)
    return int(cuda.cuMemPoolSetAttribute(ctypes.c_void_p(pool), attribute, ctypes.byref(number)))


def trim(pool: int, keep: int) -> int:
    """Result of cuMemPoolTrimTo."""
    return int(cuda.cuMemPoolTrimTo(ctypes.c_void_p(pool), ctypes.c_size_t(keep)))


def set_access(pool: int, device: int, flags: int) -> int:
    """Result of cuMemPoolSetAccess: no access (0), read (1), read and write (3)."""
    entry = (ctypes.c_int * 3)(1, device, flags)
    return int(cuda.cuMemPoolSetAccess(ctypes.c_void_p(pool), entry, ctypes.c_size_t(1)))


def access(pool: int, device: int) -> int:
    """Access of a device by cuMemPoolGetAccess."""
    flags, location = ctypes.c_int(-1), (ctypes.c_int * 2)(1, device)
    cuda.cuMemPoolGetAccess(ctypes.byref(flags), ctypes.c_void_p(pool), location)
    return flags.value


def destroy(pool: int) -> int:
    """Result of cuMemPoolDestroy."""
    return int(cuda.cuMemPoolDestroy(ctypes.c_void_p(pool)))


def export(pool: int) -> tuple[int, int]:
    """Result and file descriptor of cuMemPoolExportToShareableHandle."""
    descriptor = ctypes.c_int(-1)
    result = cuda.cuMemPoolExportToShareableHandle(
        ctypes.byref(descriptor), ctypes.c_void_p(pool), POSIX_FD, ctypes.c_uint64()
    )
    return result, descriptor.value


def take(descriptor: int) -> tuple[int, int]:
    """Result and handle of cuMemPoolImportFromShareableHandle."""
    pool = ctypes.c_void_p()
    result = cuda.cuMemPoolImportFromShareableHandle(
        ctypes.byref(pool), ctypes.c_void_p(descriptor), POSIX_FD, ctypes.c_uint64()
    )
    return result, pool.value or 0


def export_pointer(pointer: int) -> tuple[int, str]:
    """Result and data of cuMemPoolExportPointer, as hexadecimal text."""
    data = Handle()
    result = cuda.cuMemPoolExportPointer(ctypes.byref(data), ctypes.c_uint64(pointer))
    return result, bytes(data).hex()


def take_pointer(pool: int, data: str) -> tuple[int, int]:
    """Result and pointer of cuMemPoolImportPointer."""
    pointer, exported = ctypes.c_uint64(), Handle.from_buffer_copy(bytes.fromhex(data))
    result = cuda.cuMemPoolImportPointer(ctypes.byref(pointer), ctypes.c_void_p(pool), ctypes.byref(exported))
    return result, pointer.value
