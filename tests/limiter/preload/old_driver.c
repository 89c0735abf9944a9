/* A driver of before CUDA 3.2: sizes and addresses have 32 bits. One card of 3 GiB; addresses are not reused. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define TOTAL  (3U << 30)

static unsigned used, next = 2U << 20;

EXPORT CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    memset(uuid, 7, sizeof *uuid);
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned bytes) {
    if (bytes > TOTAL - used) return CUDA_ERROR_OUT_OF_MEMORY;
    used += bytes;
    *pointer = next;
    next += (bytes + (2U << 20) - 1) & ~((2U << 20) - 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned *pitch, unsigned width, unsigned height,
                                unsigned element) {
    *pitch = (width + 511) & ~511U;
    return element ? cuMemAlloc(pointer, *pitch * height) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { return pointer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT CUresult cuMemGetInfo(unsigned *free, unsigned *total) {
    *free = TOTAL - used;
    *total = TOTAL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
    *bytes = TOTAL;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
