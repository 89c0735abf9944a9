"""Copies between card and host by every function that the limiter watches. Addresses are numbers."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
SIZE = 4096
U64 = ctypes.c_uint64
_PAGEABLE = ctypes.create_string_buffer(SIZE)
SYNCHRONOUS = ("cuMemcpy{}", "cuMemcpyHtoD_v2{}", "cuMemcpyDtoH_v2{}")
ASYNCHRONOUS = ("cuMemcpyAsync{}", "cuMemcpyHtoDAsync_v2{}", "cuMemcpyDtoHAsync_v2{}")
EVERY = (
    *(name.format(suffix) for name in SYNCHRONOUS for suffix in ("", "_ptds")),
    *(name.format(suffix) for name in ASYNCHRONOUS for suffix in ("", "_ptsz")),
)


def pageable() -> int:
    """Memory of the host that CUDA does not know."""
    return ctypes.addressof(_PAGEABLE)


def pinned() -> int:
    """Memory of the host from cuMemHostAlloc."""
    made = ctypes.c_void_p()
    if cuda.cuMemHostAlloc(ctypes.byref(made), ctypes.c_size_t(SIZE), 0):
        raise RuntimeError("cuMemHostAlloc")
    return made.value or 0


def copy(function: str, host: int, card: int, into: int = 0, *, to_host: bool = False, size: int = SIZE) -> int:
    """Result of a copy; `to_host` is the direction where the function's name does not say it."""
    to, source = (host, card) if to_host or "DtoH" in function else (card, host)
    stream = (ctypes.c_void_p(into),) if "Async" in function else ()
    return int(cuda[function](U64(to), U64(source), ctypes.c_size_t(size), *stream))
