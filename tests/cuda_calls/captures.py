"""Streams and their capture. Handles are numbers."""

import ctypes
import threading

GLOBAL, THREAD_LOCAL, RELAXED = range(3)

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


def stream() -> int:
    """A non-blocking stream."""
    made = P()
    cuda.cuStreamCreate(ctypes.byref(made), 1)
    return made.value or 0


def begin(of: int, mode: int = GLOBAL) -> int:
    """Result of cuStreamBeginCapture_v2."""
    return int(cuda.cuStreamBeginCapture_v2(P(of), mode))


def end(of: int) -> tuple[int, int]:
    """Result and graph of cuStreamEndCapture."""
    graph = P()
    return cuda.cuStreamEndCapture(P(of), ctypes.byref(graph)), graph.value or 0


def status(of: int) -> int:
    """CUstreamCaptureStatus: 0 = not captured, 1 = captured, 2 = invalid."""
    found = ctypes.c_int(-1)
    cuda.cuStreamIsCapturing(P(of), ctypes.byref(found))
    return found.value


def told(of: int) -> tuple[int, int]:
    """Status and graph by cuStreamGetCaptureInfo_v2."""
    found, number, graph = ctypes.c_int(-1), ctypes.c_uint64(), P()
    cuda.cuStreamGetCaptureInfo_v2(P(of), ctypes.byref(found), ctypes.byref(number), ctypes.byref(graph), None, None)
    return found.value, graph.value or 0


def exchange(mode: int) -> int:
    """The mode that this thread had before."""
    value = ctypes.c_int(mode)
    cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(value))
    return value.value


def alloc(size: int, of: int) -> tuple[int, int]:
    """Result and pointer of cuMemAllocAsync."""
    pointer = ctypes.c_uint64()
    return cuda.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(size), P(of)), pointer.value


def free(pointer: int, of: int) -> int:
    """Result of cuMemFreeAsync."""
    return int(cuda.cuMemFreeAsync(ctypes.c_uint64(pointer), P(of)))


def fill(pointer: int, size: int, of: int) -> int:
    """Result of cuMemsetD8Async."""
    return int(cuda.cuMemsetD8Async(ctypes.c_uint64(pointer), 0, ctypes.c_size_t(size), P(of)))


def launch(function: int, of: int) -> int:
    """Result of cuLaunchKernel."""
    return int(cuda.cuLaunchKernel(P(function), *[1] * 6, 0, P(of), None, None))


def elsewhere(function: str, *arguments: object, mode: int = GLOBAL) -> int:
    """Result of a function of the driver in another thread with this thread's context and that capture mode."""
    context, results = P(), []
    cuda.cuCtxGetCurrent(ctypes.byref(context))

    def call() -> None:
        cuda.cuCtxSetCurrent(context)
        exchange(mode)
        results.append(int(cuda[function](*arguments)))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return results[0]
