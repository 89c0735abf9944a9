"""Graphs and their memory. Handles are numbers."""

import ctypes

from tests.cuda_calls import pools

USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)  # CU_GRAPH_MEM_ATTR_*
AUTO_FREE, UPLOAD = 1, 2

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


class Allocation(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = (
        ("pool", pools.Properties),
        ("access", P),
        ("access_count", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("pointer", ctypes.c_uint64),
    )


class Instantiation(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = (("flags", ctypes.c_uint64), ("stream", P), ("error_node", P), ("result", ctypes.c_int))


class NodeParameters(ctypes.Structure):
    """CUgraphNodeParams of an allocation node."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("allocation", Allocation),
        ("rest", ctypes.c_ubyte * 256),
    )


def create() -> int:
    """A new graph."""
    graph = P()
    cuda.cuGraphCreate(ctypes.byref(graph), 0)
    return graph.value or 0


def _allocation(size: int, device: int) -> Allocation:
    return Allocation(pools.Properties(1, 0, (ctypes.c_int * 2)(1, device)), None, 0, size)


def alloc(graph: int, size: int, device: int = 0) -> tuple[int, int]:
    """Result and address of an allocation node."""
    node, wanted = P(), _allocation(size, device)
    result = cuda.cuGraphAddMemAllocNode(ctypes.byref(node), P(graph), None, ctypes.c_size_t(), ctypes.byref(wanted))
    return result, wanted.pointer


def alloc_by_parameters(graph: int, size: int) -> tuple[int, int]:
    """Result and address of an allocation node that cuGraphAddNode_v2 adds."""
    node, wanted = P(), NodeParameters(type=10, allocation=_allocation(size, 0))
    result = cuda.cuGraphAddNode_v2(ctypes.byref(node), P(graph), None, None, ctypes.c_size_t(), ctypes.byref(wanted))
    return result, wanted.allocation.pointer


def free(graph: int, pointer: int) -> int:
    """Result of adding a free node."""
    node = P()
    return int(
        cuda.cuGraphAddMemFreeNode(ctypes.byref(node), P(graph), None, ctypes.c_size_t(), ctypes.c_uint64(pointer))
    )


def kernel(graph: int, function: int) -> int:
    """Result of adding a kernel node."""
    node, words = P(), (ctypes.c_uint64 * 16)(function)
    return int(cuda.cuGraphAddKernelNode_v2(ctypes.byref(node), P(graph), None, ctypes.c_size_t(), words))


def nodes_of(graph: int) -> list[int]:
    """The nodes, in the order of their creation."""
    count = ctypes.c_size_t()
    cuda.cuGraphGetNodes(P(graph), None, ctypes.byref(count))
    nodes = (P * count.value)()
    cuda.cuGraphGetNodes(P(graph), nodes, ctypes.byref(count))
    return [node or 0 for node in nodes]


def update(instance: int, graph: int) -> tuple[int, int]:
    """Result of cuGraphExecUpdate_v2, and what it says about the reason."""
    info = (ctypes.c_uint64 * 3)()
    result = cuda.cuGraphExecUpdate_v2(P(instance), P(graph), info)
    return result, ctypes.c_int(info[0] & 0xFFFFFFFF).value


def set_kernel(node: int, function: int, instance: int = 0) -> int:
    """Result of setting what a kernel node launches: in its graph, or in an instance."""
    words = (ctypes.c_uint64 * 16)(function)
    if instance:
        return int(cuda.cuGraphExecKernelNodeSetParams_v2(P(instance), P(node), words))
    return int(cuda.cuGraphKernelNodeSetParams_v2(P(node), words))


def types(graph: int) -> list[int]:
    """The type of each node."""
    count = ctypes.c_size_t()
    cuda.cuGraphGetNodes(P(graph), None, ctypes.byref(count))
    nodes, kind = (P * count.value)(), ctypes.c_int()
    cuda.cuGraphGetNodes(P(graph), nodes, ctypes.byref(count))
    found = []
    for node in nodes:
        cuda.cuGraphNodeGetType(P(node), ctypes.byref(kind))
        found.append(kind.value)
    return found


def told(graph: int) -> tuple[int, int]:
    """Bytes and address of the first node, by cuGraphMemAllocNodeGetParams."""
    first, count, found = (P * 1)(), ctypes.c_size_t(1), Allocation()
    cuda.cuGraphGetNodes(P(graph), first, ctypes.byref(count))
    cuda.cuGraphMemAllocNodeGetParams(P(first[0]), ctypes.byref(found))
    return found.size, found.pointer


def instantiate(graph: int, flags: int = 0, function: str = "cuGraphInstantiateWithFlags") -> tuple[int, int]:
    """Result and instance of an instantiation function."""
    instance, parameters = P(), Instantiation(flags)
    rest = {
        "cuGraphInstantiateWithFlags": (ctypes.c_uint64(flags),),
        "cuGraphInstantiateWithParams": (ctypes.byref(parameters),),
    }.get(function.removesuffix("_ptsz"), (None, None, ctypes.c_size_t()))
    result = cuda[function](ctypes.byref(instance), P(graph), *rest)
    return result, instance.value or 0


def launch(instance: int, function: str = "cuGraphLaunch") -> int:
    """Result of a launch or an upload in the default stream."""
    return int(cuda[function](P(instance), None))


def destroy(instance: int) -> int:
    """Result of cuGraphExecDestroy."""
    return int(cuda.cuGraphExecDestroy(P(instance)))


def read(attribute: int, device: int = 0) -> int:
    """Value of an attribute by cuDeviceGetGraphMemAttribute."""
    value = ctypes.c_uint64()
    cuda.cuDeviceGetGraphMemAttribute(device, attribute, ctypes.byref(value))
    return value.value


def write(attribute: int, value: int, device: int = 0) -> int:
    """Result of cuDeviceSetGraphMemAttribute."""
    number = ctypes.c_uint64(value)
    return int(cuda.cuDeviceSetGraphMemAttribute(device, attribute, ctypes.byref(number)))
