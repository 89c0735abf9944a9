/* One function for each kind of allocation. An allocation is given back by the end of the process only. */
#include "probe/kinds.h"

#include <string.h>

#include "probe/driver.h"

#define TEXEL_BYTES 16 /* four floats */
#define ROW_TEXELS  (MIB / TEXEL_BYTES)
#define SIDE_TEXELS 256 /* a square of this side is one MiB */
#define LEVELS      17

static CUresult by_alloc(CUdevice device, size_t bytes) {
    CUdeviceptr pointer;
    (void)device;
    return cuda.cuMemAlloc_(&pointer, bytes);
}

static CUresult by_pitch(CUdevice device, size_t bytes) {
    CUdeviceptr pointer;
    size_t pitch;
    (void)device;
    return cuda.cuMemAllocPitch_(&pointer, &pitch, MIB, bytes / MIB, 4);
}

static CUresult by_managed(CUdevice device, size_t bytes) {
    CUdeviceptr pointer;
    (void)device;
    return cuda.cuMemAllocManaged_(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
}

static CUresult by_async(CUdevice device, size_t bytes) {
    CUdeviceptr pointer;
    (void)device;
    return cuda.cuMemAllocAsync_(&pointer, bytes, NULL);
}

/* All allocations of this kind come from one pool. */
static CUresult by_pool(CUdevice device, size_t bytes) {
    static CUmemoryPool pool;
    CUdeviceptr pointer;
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    CUresult result = !pool ? cuda.cuMemPoolCreate_(&pool, &properties) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? cuda.cuMemAllocFromPoolAsync_(&pointer, bytes, pool, NULL) : result;
}

/* Memory that a launched graph allocates and does not free. */
static CUresult by_graph(CUdevice device, size_t bytes) {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec instance;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = bytes,
    };
    CUresult result = cuda.cuGraphCreate_(&graph, 0);
    if (result == CUDA_SUCCESS) result = cuda.cuGraphAddMemAllocNode_(&node, graph, NULL, 0, &wanted);
    if (result == CUDA_SUCCESS) result = cuda.cuGraphInstantiateWithFlags_(&instance, graph, 0);
    return result == CUDA_SUCCESS ? cuda.cuGraphLaunch_(instance, NULL) : result;
}

static CUresult by_vmm(CUdevice device, size_t bytes) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    return cuda.cuMemCreate_(&handle, bytes, &properties, 0);
}

static CUresult by_array(CUdevice device, size_t bytes) {
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = ROW_TEXELS, .Height = bytes / MIB, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    (void)device;
    return cuda.cuArrayCreate_(&array, &descriptor);
}

static CUresult by_array3d(CUdevice device, size_t bytes) {
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = SIDE_TEXELS,
                                          .Height = SIDE_TEXELS,
                                          .Depth = bytes / MIB,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4};
    (void)device;
    return cuda.cuArray3DCreate_(&array, &descriptor);
}

/* The levels below the first add about a third. */
static CUresult by_mipmap(CUdevice device, size_t bytes) {
    CUmipmappedArray mipmap;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = ROW_TEXELS, .Height = bytes / MIB, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    (void)device;
    return cuda.cuMipmappedArrayCreate_(&mipmap, &descriptor, LEVELS);
}

/* The size is ignored: a module has the size of its code. */
static CUresult by_module(CUdevice device, size_t bytes) {
    static const char code[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";
    CUmodule module;
    (void)device;
    (void)bytes;
    return cuda.cuModuleLoadData_(&module, code);
}

static CUresult by_context(CUdevice device, size_t bytes) {
    CUcontext context;
    (void)bytes;
    return cuda.cuCtxCreate_(&context, 0, device);
}

allocate_function kind_named(const char *name) {
    static const struct {
        const char *name;
        allocate_function allocate;
    } kinds[] = {
        {"alloc", by_alloc},     {"pitch", by_pitch},   {"managed", by_managed}, {"async", by_async},
        {"pool", by_pool},       {"graph", by_graph},   {"vmm", by_vmm},         {"array", by_array},
        {"array3d", by_array3d}, {"mipmap", by_mipmap}, {"module", by_module},   {"context", by_context},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].allocate;
    return NULL;
}
