"""CUDA arrays. Handles are numbers. Texels have four floats unless a format is given."""

import ctypes

FLOAT = 0x20
DEFERRED, SPARSE, LAYERED = 0x80, 0x40, 0x01
TILE_POOL = 1

cuda = ctypes.CDLL("libcuda.so.1")


class Descriptor(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR."""

    _fields_ = (
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
    )


class Descriptor3D(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


class Requirements(ctypes.Structure):
    """CUDA_ARRAY_MEMORY_REQUIREMENTS."""

    _fields_ = (("size", ctypes.c_size_t), ("alignment", ctypes.c_size_t), ("reserved", ctypes.c_uint * 4))


class MapInfo(ctypes.Structure):
    """CUarrayMapInfo, with its unions as arrays of words."""

    _fields_ = (
        ("resource_type", ctypes.c_int),
        ("resource", ctypes.c_void_p),
        ("subresource_type", ctypes.c_int),
        ("subresource", ctypes.c_uint64 * 4),
        ("operation", ctypes.c_int),
        ("handle_type", ctypes.c_int),
        ("handle", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("devices", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 2),
    )


def plain(width: int, height: int) -> tuple[int, int]:
    """Result and handle of cuArrayCreate_v2."""
    array = ctypes.c_void_p()
    result = cuda.cuArrayCreate_v2(ctypes.byref(array), ctypes.byref(Descriptor(width, height, FLOAT, 4)))
    return result, array.value or 0


def cube(width: int, height: int, depth: int, flags: int = 0, levels: int = 0, texel: int = FLOAT) -> tuple[int, int]:
    """Result and handle of cuArray3DCreate_v2, or with levels of cuMipmappedArrayCreate."""
    made, descriptor = ctypes.c_void_p(), Descriptor3D(width, height, depth, texel, 4, flags)
    if levels:
        result = cuda.cuMipmappedArrayCreate(ctypes.byref(made), ctypes.byref(descriptor), levels)
    else:
        result = cuda.cuArray3DCreate_v2(ctypes.byref(made), ctypes.byref(descriptor))
    return result, made.value or 0


def level(mipmap: int, number: int) -> tuple[int, list[int]]:
    """Result of cuMipmappedArrayGetLevel, and width, height and depth of that level."""
    array, found = ctypes.c_void_p(), Descriptor3D()
    result = cuda.cuMipmappedArrayGetLevel(ctypes.byref(array), ctypes.c_void_p(mipmap), number)
    result = result or cuda.cuArray3DGetDescriptor_v2(ctypes.byref(found), array)
    return result, [found.width, found.height, found.depth]


def described(array: int) -> tuple[int, int]:
    """Width and height by cuArrayGetDescriptor_v2."""
    found = Descriptor()
    cuda.cuArrayGetDescriptor_v2(ctypes.byref(found), ctypes.c_void_p(array))
    return found.width, found.height


def requirements(array: int, *, mipmapped: bool = False) -> tuple[int, int]:
    """Result and size of cuArrayGetMemoryRequirements, or of the function for mipmapped arrays."""
    needs = Requirements()
    function = cuda.cuMipmappedArrayGetMemoryRequirements if mipmapped else cuda.cuArrayGetMemoryRequirements
    return function(ctypes.byref(needs), ctypes.c_void_p(array), 0), needs.size


def destroy(array: int, *, mipmapped: bool = False) -> int:
    """Result of cuArrayDestroy or cuMipmappedArrayDestroy."""
    function = cuda.cuMipmappedArrayDestroy if mipmapped else cuda.cuArrayDestroy
    return int(function(ctypes.c_void_p(array)))


def map_memory(array: int, handle: int, *, mipmapped: bool = False, tile: int = 0) -> int:
    """Result of mapping a handle's memory to a tile of a sparse array, or to a deferred array; handle 0 unmaps."""
    operation = 1 if handle else 2
    words = (ctypes.c_uint64 * 4)(tile)
    entry = MapInfo(int(mipmapped), array, 0, words, operation, 0, handle, 0, 1)
    return int(cuda.cuMemMapArrayAsync(ctypes.byref(entry), 1, None))
