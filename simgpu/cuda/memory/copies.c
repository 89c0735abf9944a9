/* Copies and fills: device addresses are checked, and no byte is copied. */
#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/queue/stream_waits.h"
#include "cuda/vmm/addresses.h"
#include "hardware/export.h"

static bool is_valid_range(CUdeviceptr address, size_t size) {
    const struct allocation *found = allocation_holding(address);
    if (!found) return mapping_holds(address, size);
    return size <= found->size - (address - found->address);
}

/* Ends a call that uses a device range. */
static CUresult touch(CUdeviceptr address, size_t size) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return size == 0 || is_valid_range(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult touch_both(CUdeviceptr to, CUdeviceptr from, size_t size) {
    if (size != 0 && !is_valid_range(from, size)) return CUDA_ERROR_INVALID_VALUE;
    return touch(to, size);
}

/* An address that is no memory of CUDA's is the host's, as far as this driver knows. */
static bool may_copy(CUdeviceptr address, size_t size) {
    return is_valid_range(address, size) || (address != 0 && !allocation_holding(address));
}

static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t size) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return size == 0 || (may_copy(to, size) && may_copy(from, size)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    return copy_any(dst, src, ByteCount);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    return copy_any(dst, src, ByteCount);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    if (!srcHost && ByteCount != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(dstDevice, ByteCount);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    if (!dstHost && ByteCount != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(srcDevice, ByteCount);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch_both(dstDevice, srcDevice, ByteCount);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    if (!srcHost && ByteCount != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(dstDevice, ByteCount);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    stream_waits_await_open();
    if (!dstHost && ByteCount != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(srcDevice, ByteCount);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    return touch_both(dstDevice, srcDevice, ByteCount);
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    (void)uc;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch(dstDevice, N);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned ui, size_t N) {
    (void)ui;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch(dstDevice, N * sizeof ui);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    (void)uc;
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;
    return touch(dstDevice, N);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned ui, size_t N, CUstream hStream) {
    (void)ui;
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(hStream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;
    return touch(dstDevice, N * sizeof ui);
}
