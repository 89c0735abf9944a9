"""The functions that memory_classes.py calls in its program. Sizes are MiB, results are the driver's."""

import ctypes
import os
from typing import Any

from tests.cuda_calls import arrays, external, vmm

cuda = ctypes.CDLL("libcuda.so.1")
P, U64, SIZE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
MIB = 1 << 20
SIDE = 256  # texels: a square of SIDE x SIDE float texels of 16 bytes is 1 MiB
GLOBAL_CAPTURE = 0
RESERVED = 2  # CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT

KERNEL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry local{size}_10(.param .u32 index, .param .u64 out)
{{
.local .align 16 .b8 depot[{size}];
.reg .b32 %r<4>;
.reg .b64 %rd<6>;
.reg .pred %p<2>;
mov.u64 %rd1, depot;
ld.param.u32 %r1, [index];
ld.param.u64 %rd2, [out];
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
st.local.u32 [%rd4], %r1;
ld.local.u32 %r2, [%rd4+-4];
setp.ne.s32 %p1, %r1, 12345;
@%p1 bra done;
st.global.u32 [%rd2], %r2;
done:
ret;
}}
"""


class Node(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int * 2),
        ("rest", ctypes.c_ubyte * 72),
        ("access", P),
        ("access_count", SIZE),
        ("size", SIZE),
        ("pointer", U64),
    )


class Kernel(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = (
        ("function", P),
        ("sizes", ctypes.c_uint * 7),
        ("parameters", P),
        ("extra", P),
        ("kernel", P),
        ("context", P),
    )


state: dict[str, Any] = {"arrays": [], "left": []}
stream = P()
arguments = (P * 2)(*(ctypes.cast(ctypes.pointer(argument), P) for argument in (ctypes.c_uint(1), U64(0))))


def start() -> int:
    context = P()
    result = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    return int(result or cuda.cuCtxSetCurrent(context) or cuda.cuStreamCreate(ctypes.byref(stream), 1))


def quiet() -> None:
    """Synchronizes and queries the free memory, as programs do."""
    cuda.cuCtxSynchronize()
    cuda.cuMemGetInfo_v2(ctypes.byref(SIZE()), ctypes.byref(SIZE()))


def alloc(mib: int) -> int:
    pointer = U64()
    result = int(cuda.cuMemAlloc_v2(ctypes.byref(pointer), SIZE(mib * MIB)))
    return result or int(cuda.cuMemFree_v2(pointer))


def array(mib: int, flags: int = 0, levels: int = 0) -> int:
    """An array with `layers` layers or slices; with levels, the first one has `layers` rows of 1 MiB."""
    if levels:
        result, made = arrays.cube(1024, mib * 64, 0, flags, levels)
    else:
        result, made = arrays.cube(SIDE * 4, SIDE * 4, mib // 16, flags) if mib >= 16 else arrays.cube(SIDE, SIDE, 0)
    if result == 0:
        state["arrays"].append((made, levels > 0))
    return result


def drop() -> None:
    for made, mipmapped in state["arrays"]:
        arrays.destroy(made, mipmapped=mipmapped)
    state["arrays"].clear()


def graph(*mib: int, freed: bool = True) -> int:
    """Result of launching a graph that allocates these sizes, and frees them or not."""
    made, instance, node, before = P(), P(), P(), (P * 1)()
    cuda.cuGraphCreate(ctypes.byref(made), 0)
    pointers = []
    for number, size in enumerate(mib):
        wanted = Node(1, 0, (ctypes.c_int * 2)(1, 0), size=size * MIB)
        cuda.cuGraphAddMemAllocNode(ctypes.byref(node), made, before, SIZE(number > 0), ctypes.byref(wanted))
        before[0] = node.value
        pointers.append(wanted.pointer)
    for pointer in pointers if freed else ():
        cuda.cuGraphAddMemFreeNode(ctypes.byref(node), made, before, SIZE(1), U64(pointer))
        before[0] = node.value
    result = cuda.cuGraphInstantiateWithFlags(ctypes.byref(instance), made, U64())
    result = int(result or cuda.cuGraphLaunch(instance, stream))
    if result == 0:
        state["graph"] = instance
        state["left"] += pointers * (not freed)
    return result


def again() -> int:
    return int(cuda.cuGraphLaunch(state["graph"], stream))


def free_left() -> int:
    return max(int(cuda.cuMemFreeAsync(U64(state["left"].pop()), stream)) for _ in list(state["left"]))


def trim() -> int:
    cuda.cuCtxSynchronize()
    return int(cuda.cuDeviceGraphMemTrim(0))


def load(size: int) -> int:
    """A kernel whose threads need this many bytes of local memory each."""
    module, function = P(), P()
    result = cuda.cuModuleLoadData(ctypes.byref(module), KERNEL.format(size=size).encode())
    cuda.cuModuleGetFunction(ctypes.byref(function), module, f"local{size}_10".encode())
    if result or not function.value:
        raise OSError(f"cuModuleLoadData says {result}")
    return function.value


def launch(function: int) -> int:
    return int(cuda.cuLaunchKernel(P(function), *[1] * 6, 0, stream, arguments, None))


def node_of(function: int) -> Kernel:
    return Kernel(function, (ctypes.c_uint * 7)(*[1] * 6, 0), ctypes.cast(arguments, P))


def instantiated(size: int) -> int:
    """Result of instantiating a graph with such a kernel."""
    made, instance, node = P(), P(), P()
    cuda.cuGraphCreate(ctypes.byref(made), 0)
    cuda.cuGraphAddKernelNode_v2(ctypes.byref(node), made, None, SIZE(), ctypes.byref(node_of(load(size))))
    result = int(cuda.cuGraphInstantiateWithFlags(ctypes.byref(instance), made, U64()))
    state["instance"], state["node"] = instance, node
    return result or int(cuda.cuGraphLaunch(instance, stream))


def changed(function: int) -> int:
    """Result of launching that graph with another kernel, if the driver supports the change."""
    if not hasattr(cuda, "cuGraphExecKernelNodeSetParams_v2"):
        return launch(function)
    node = ctypes.byref(node_of(function))
    result = int(cuda.cuGraphExecKernelNodeSetParams_v2(state["instance"], state["node"], node))
    return result or int(cuda.cuGraphLaunch(state["instance"], stream))


def stack(size: int) -> int:
    """Result of setting the stack size."""
    return int(cuda.cuCtxSetLimit(0, SIZE(size)))


def physical_memory(mib: int, *, export: bool = False, usage: int = 0) -> int:
    state["mib"] = mib
    result, state["handle"] = vmm.create(mib * MIB, handle_types=vmm.POSIX_FD * export, usage=usage)
    if export and result == 0:
        result, state["descriptor"] = vmm.export(state["handle"])
    return result


def released() -> int:
    return vmm.release(state["handle"])


def imported() -> int:
    result, state["imported"] = vmm.take(state["descriptor"])
    return result


def imported_is_mapped() -> int:
    """Whether NVML counts a mapping of what was imported, the table says."""
    place, size = U64(), SIZE(state["mib"] * MIB)
    cuda.cuMemAddressReserve(ctypes.byref(place), size, SIZE(), U64(), U64())
    state["place"] = place
    return int(cuda.cuMemMap(place, size, SIZE(), U64(state["imported"]), U64()))


def ended() -> int:
    """Ends the import and its mapping."""
    result = int(cuda.cuMemUnmap(state["place"], SIZE(state["mib"] * MIB)))
    return result or vmm.release(state["imported"])


def closed() -> None:
    os.close(state["descriptor"])


def number_comes_again() -> int:
    """Closes a descriptor whose number is then reused by another one: only the second keeps memory."""
    result = physical_memory(500, export=True)
    first = state["handle"]
    closed()
    return result or physical_memory(300, export=True) or vmm.release(first)


def outside() -> int:
    """Imports the memory as external memory, with a buffer of it."""
    size = state["mib"] * MIB
    result, state["memory"] = external.take(state["descriptor"], size)
    if result == 0:
        result, state["buffer"] = external.buffer(state["memory"], 0, size)
    return result


def outside_ended() -> int:
    return external.destroy(state["memory"]) or int(cuda.cuMemFree_v2(U64(state["buffer"])))


def array_of_backing() -> int:
    result, made = arrays.cube(SIDE * 8, state["mib"] * SIDE // 8, 0, arrays.DEFERRED)
    state["arrays"].append((made, False))
    return result or arrays.map_memory(made, state["handle"])


def captured() -> int:
    """Result of a capture in which memory is allocated and queried, if the driver supports it."""
    made, pointer = P(), U64()
    if not hasattr(cuda, "cuStreamBeginCapture_v2"):
        return 0
    result = cuda.cuStreamBeginCapture_v2(stream, GLOBAL_CAPTURE)
    result = result or cuda.cuMemAllocAsync(ctypes.byref(pointer), SIZE(64 * MIB), stream)
    cuda.cuMemGetInfo_v2(ctypes.byref(SIZE()), ctypes.byref(SIZE()))
    result = result or cuda.cuMemFreeAsync(pointer, stream)
    return int(cuda.cuStreamEndCapture(stream, ctypes.byref(made)) or result)
