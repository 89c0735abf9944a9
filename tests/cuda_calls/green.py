"""Green contexts."""

import ctypes

SM = 1
DEFAULT_STREAM = 1

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


class Resource(ctypes.Structure):
    """CUdevResource of multiprocessors."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("padding", ctypes.c_ubyte * 92),
        ("count", ctypes.c_uint),
        ("rest", ctypes.c_ubyte * 36),
        ("next", P),
    )


def of_device(device: int = 0, kind: int = SM) -> tuple[int, int]:
    """Result of cuDeviceGetDevResource, and the number of multiprocessors."""
    resource = Resource()
    return cuda.cuDeviceGetDevResource(device, ctypes.byref(resource), kind), resource.count


def _split(groups: int, least: int) -> tuple[int, list[Resource], Resource]:
    whole, rest = Resource(), Resource()
    cuda.cuDeviceGetDevResource(0, ctypes.byref(whole), SM)
    parts, count = (Resource * groups)(), ctypes.c_uint(groups)
    result = cuda.cuDevSmResourceSplitByCount(
        parts, ctypes.byref(count), ctypes.byref(whole), ctypes.byref(rest), 0, least
    )
    return result, parts[: count.value], rest


def split(groups: int, least: int) -> tuple[int, list[int], int]:
    """Result of cuDevSmResourceSplitByCount, multiprocessors of each part, and of the rest."""
    result, parts, rest = _split(groups, least)
    return result, [part.count for part in parts], rest.count


def possible(least: int) -> int:
    """Number of possible parts with at least this many multiprocessors."""
    whole, count = Resource(), ctypes.c_uint()
    cuda.cuDeviceGetDevResource(0, ctypes.byref(whole), SM)
    cuda.cuDevSmResourceSplitByCount(None, ctypes.byref(count), ctypes.byref(whole), None, 0, least)
    return int(count.value)


def create(least: int) -> tuple[int, int, int]:
    """Result, green context and its context, which becomes current, with at least this many multiprocessors."""
    part, described, green, context = _split(1, least)[1][0], P(), P(), P()
    cuda.cuDevResourceGenerateDesc(ctypes.byref(described), ctypes.byref(part), 1)
    result = cuda.cuGreenCtxCreate(ctypes.byref(green), described, 0, DEFAULT_STREAM)
    result = result or cuda.cuCtxFromGreenCtx(ctypes.byref(context), green) or cuda.cuCtxSetCurrent(context)
    return result, green.value or 0, context.value or 0


def of_current() -> int:
    """Multiprocessors of the current context."""
    resource = Resource()
    cuda.cuCtxGetDevResource(None, ctypes.byref(resource), SM)
    return int(resource.count)


def destroy(green: int) -> int:
    """Result of cuGreenCtxDestroy."""
    return int(cuda.cuGreenCtxDestroy(P(green)))
