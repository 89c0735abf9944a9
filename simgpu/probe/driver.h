/* The CUDA driver's functions that the probe calls. */
#ifndef SIMGPU_PROBE_DRIVER_H
#define SIMGPU_PROBE_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Name for cuGetProcAddress, its version, exported symbol, parameters. */
#define FUNCTIONS(X)                                                                                                  \
    X(cuInit, 2000, cuInit, (unsigned))                                                                               \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount, (int *))                                                              \
    X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                               \
    X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, (size_t *, CUdevice))                                              \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                              \
    X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                     \
    X(cuCtxSetCurrent, 4000, cuCtxSetCurrent, (CUcontext))                                                            \
    X(cuCtxCreate, 3020, cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                           \
    X(cuModuleLoadData, 2000, cuModuleLoadData, (CUmodule *, const void *))                                           \
    X(cuModuleGetFunction, 2000, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                         \
    X(cuLaunchKernel, 4000, cuLaunchKernel,                                                                           \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    X(cuCtxSynchronize, 2000, cuCtxSynchronize, (void))                                                               \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2, (size_t *, size_t *))                                                      \
    X(cuMemAlloc, 3020, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                       \
    X(cuMemAllocPitch, 3020, cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                 \
    X(cuMemAllocManaged, 6000, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                                  \
    X(cuMemAllocAsync, 11020, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                                     \
    X(cuMemCreate, 10020, cuMemCreate,                                                                                \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))                      \
    X(cuArrayCreate, 3020, cuArrayCreate_v2, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))                              \
    X(cuArray3DCreate, 3020, cuArray3DCreate_v2, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))                        \
    X(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate,                                                           \
      (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))                                                \
    X(cuMemPoolCreate, 11020, cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                              \
    X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))       \
    X(cuGraphCreate, 10000, cuGraphCreate, (CUgraph *, unsigned))                                                     \
    X(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode,                                                          \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *))                            \
    X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))  \
    X(cuGraphLaunch, 10000, cuGraphLaunch, (CUgraphExec, CUstream))                                                   \
    X(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle, (CUipcMemHandle *, CUdeviceptr))                                    \
    X(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2, (CUdeviceptr *, CUipcMemHandle, unsigned))

/* NOLINTNEXTLINE(bugprone-macro-parentheses): the parameters have parentheses of their own */
#define DECLARE(name, version, symbol, parameters) CUresult(*name##_) parameters;
struct driver {
    FUNCTIONS(DECLARE)
};
extern struct driver cuda;

/* Prints {"error":...,"result":...} and returns 1. */
int failed(const char *what, int result);
/* Loads the driver, into a linker namespace of its own if `in_namespace`, finds the functions, by cuGetProcAddress or
 * by symbol, and initializes CUDA. Returns 0, or 1 after it printed an error. */
int start_cuda(bool by_proc, bool in_namespace);

#endif
