/* Every function of the driver and of NVML that we know, once, with its class. The table, the exports, the substitution
 * and the tests' expectations come from here; the prototypes from NVIDIA's header, so a wrong signature does not
 * compile.
 *
 *   ALLOCATES, FREES   device memory: charged and taken back
 *   QUERIES            says how much memory there is: answers with the limit
 *   LAUNCHES           starts work on the GPU
 *   RESOLVES           hands out driver functions: answers with our wrappers
 */
#ifndef VGPU_FUNCTIONS_H
#define VGPU_FUNCTIONS_H

#define CUDA_HOOKED(X)                         \
    X(cuMemAlloc_v2, ALLOCATES)                \
    X(cuMemAllocPitch_v2, ALLOCATES)           \
    X(cuMemAllocManaged, ALLOCATES)            \
    X(cuMemAllocAsync, ALLOCATES)              \
    X(cuMemAllocAsync_ptsz, ALLOCATES)         \
    X(cuMemAllocFromPoolAsync, ALLOCATES)      \
    X(cuMemAllocFromPoolAsync_ptsz, ALLOCATES) \
    X(cuMemCreate, ALLOCATES)                  \
    X(cuMemRetainAllocationHandle, ALLOCATES)  \
    X(cuMemMap, ALLOCATES)                     \
    X(cuMemRelease, FREES)                     \
    X(cuMemUnmap, FREES)                       \
    X(cuMemFree_v2, FREES)                     \
    X(cuMemFreeAsync, FREES)                   \
    X(cuMemFreeAsync_ptsz, FREES)              \
    X(cuCtxDestroy, FREES)                     \
    X(cuCtxDestroy_v2, FREES)                  \
    X(cuDevicePrimaryCtxRelease, FREES)        \
    X(cuDevicePrimaryCtxRelease_v2, FREES)     \
    X(cuDevicePrimaryCtxReset, FREES)          \
    X(cuDevicePrimaryCtxReset_v2, FREES)       \
    X(cuMemGetInfo_v2, QUERIES)                \
    X(cuDeviceTotalMem_v2, QUERIES)            \
    X(cuGetProcAddress, RESOLVES)              \
    X(cuGetProcAddress_v2, RESOLVES)

#define NVML_HOOKED(X)                  \
    X(nvmlDeviceGetMemoryInfo, QUERIES) \
    X(nvmlDeviceGetMemoryInfo_v2, QUERIES)

/* Called by us, never answered by us. */
#define CUDA_CALLED(X)    \
    X(cuCtxGetDevice)     \
    X(cuDeviceGetUuid)    \
    X(cuDeviceGetUuid_v2) \
    X(cuPointerGetAttribute)

#define NVML_CALLED(X) X(nvmlDeviceGetUUID)

#endif
