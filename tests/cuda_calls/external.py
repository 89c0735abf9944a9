"""External memory: imports of descriptors of another API."""

import ctypes

OPAQUE_FD = 1

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


class HandleDescriptor(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_HANDLE_DESC."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("descriptor", ctypes.c_uint64 * 2),
        ("size", ctypes.c_uint64),
        ("flags", ctypes.c_uint * 17),
    )


class BufferDescriptor(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_BUFFER_DESC."""

    _fields_ = (("offset", ctypes.c_uint64), ("size", ctypes.c_uint64), ("flags", ctypes.c_uint * 17))


def take(descriptor: int, size: int, kind: int = OPAQUE_FD) -> tuple[int, int]:
    """Result and handle of cuImportExternalMemory."""
    memory, wanted = P(), HandleDescriptor(kind, (ctypes.c_uint64 * 2)(descriptor), size)
    return cuda.cuImportExternalMemory(ctypes.byref(memory), ctypes.byref(wanted)), memory.value or 0


def buffer(memory: int, offset: int, size: int) -> tuple[int, int]:
    """Result and pointer of cuExternalMemoryGetMappedBuffer."""
    pointer, wanted = ctypes.c_uint64(), BufferDescriptor(offset, size)
    result = cuda.cuExternalMemoryGetMappedBuffer(ctypes.byref(pointer), P(memory), ctypes.byref(wanted))
    return result, pointer.value


def destroy(memory: int) -> int:
    """Result of cuDestroyExternalMemory."""
    return int(cuda.cuDestroyExternalMemory(P(memory)))
