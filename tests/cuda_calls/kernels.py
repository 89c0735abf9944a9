"""Kernels, whose names say how long they run and what they need (simgpu/cuda/module/kernel_name.h).

Handles are numbers.
"""

import ctypes

LOCAL_SIZE_BYTES = 3  # CU_FUNC_ATTRIBUTE_*
STACK_SIZE, PRINTF_SIZE, HEAP_SIZE, SYNC_DEPTH, PENDING_LAUNCHES, L2_FETCH, L2_PERSISTING = range(7)  # CU_LIMIT_*

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


def load(name: str) -> int:
    """The function of that name in a new module."""
    module, function = P(), P()
    cuda.cuModuleLoadData(ctypes.byref(module), b"")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    return function.value or 0


def from_library(name: str) -> int:
    """The kernel of that name in a new library."""
    library, kernel = P(), P()
    cuda.cuLibraryLoadData(ctypes.byref(library), b"", None, None, 0, None, None, 0)
    cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, name.encode())
    return kernel.value or 0


def make_loaded(function: int) -> int:
    """Result of cuFuncLoad, for a kernel of a library with its function in the current context."""
    of_kernel = P()
    if cuda.cuFuncLoad(P(function)) == 0:
        return 0
    return int(cuda.cuKernelGetFunction(ctypes.byref(of_kernel), P(function)) or cuda.cuFuncLoad(of_kernel))


def launch(function: int, by: str = "cuLaunchKernel") -> int:
    """Result of a launch in the default stream."""
    extra = () if "Cooperative" in by else (None,)
    return int(cuda[by](P(function), *[1] * 6, 0, None, None, *extra))


def once(name: str) -> int:
    """Result of a launch from a new module, which is unloaded afterwards."""
    module, function = P(), P()
    cuda.cuModuleLoadData(ctypes.byref(module), b"")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    result = launch(function.value or 0)
    cuda.cuModuleUnload(module)
    return result


def local_size(function: int) -> tuple[int, int]:
    """Result and value of cuFuncGetAttribute."""
    value = ctypes.c_int()
    return cuda.cuFuncGetAttribute(ctypes.byref(value), LOCAL_SIZE_BYTES, P(function)), value.value


def stack() -> int:
    """Stack size of the current context."""
    value = ctypes.c_size_t()
    cuda.cuCtxGetLimit(ctypes.byref(value), STACK_SIZE)
    return value.value


def set_stack(size: int) -> int:
    """Result of cuCtxSetLimit for the stack size."""
    return int(cuda.cuCtxSetLimit(STACK_SIZE, ctypes.c_size_t(size)))


def limit(which: int) -> int:
    """A limit of the current context."""
    value = ctypes.c_size_t()
    cuda.cuCtxGetLimit(ctypes.byref(value), which)
    return value.value


def set_limit(which: int, value: int) -> int:
    """Result of cuCtxSetLimit."""
    return int(cuda.cuCtxSetLimit(which, ctypes.c_size_t(value)))
