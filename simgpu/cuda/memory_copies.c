/* Copies and fills: the device's side is checked, and no byte moves. */
#define _GNU_SOURCE
#include "driver.h"

static bool known(CUdeviceptr address, size_t size) {
    const Allocation *found = allocation_holding(address);
    if (found == NULL) {
        return mapping_holds(address, size);
    }
    return size <= found->size - (address - found->address);
}

static CUresult touch(CUdeviceptr address, size_t size) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    LEAVE(size == 0 || known(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult touch_both(CUdeviceptr to, CUdeviceptr from, size_t size) {
    REQUIRE(size == 0 || known(from, size), CUDA_ERROR_INVALID_VALUE);
    return touch(to, size);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    ENTER();
    REQUIRE(srcHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(dstDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    ENTER();
    REQUIRE(dstHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    ENTER();
    return touch_both(dstDevice, srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                         CUstream hStream) {
    CUresult result;
    ENTER();
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) {
        LEAVE(result);
    }
    REQUIRE(srcHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(dstDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    CUresult result;
    ENTER();
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) {
        LEAVE(result);
    }
    REQUIRE(dstHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
    CUresult result;
    ENTER();
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) {
        LEAVE(result);
    }
    return touch_both(dstDevice, srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    (void)uc;
    ENTER();
    return touch(dstDevice, N);
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
    (void)ui;
    ENTER();
    return touch(dstDevice, N * sizeof ui);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    (void)uc;
    CUresult result;
    ENTER();
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) {
        LEAVE(result);
    }
    return touch(dstDevice, N);
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    (void)ui;
    CUresult result;
    ENTER();
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) {
        LEAVE(result);
    }
    return touch(dstDevice, N * sizeof ui);
}
