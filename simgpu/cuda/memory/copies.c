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

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    return copy_any(to, from, size);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    return copy_any(to, from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    if (!from && size != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(to, size);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    if (!to && size != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(from, size);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch_both(to, from, size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    if (!from && size != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(to, size);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    stream_waits_await_open();
    if (!to && size != 0) return CUDA_ERROR_INVALID_VALUE;
    return touch(from, size);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    return touch_both(to, from, size);
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    (void)value;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch(to, count);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    (void)value;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch(to, count * sizeof value);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    (void)value;
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;
    return touch(to, count);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    (void)value;
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMSET, &result)) return result;
    return touch(to, count * sizeof value);
}

static CUresult touch_peers(CUcontext to_context, CUcontext from_context, CUdeviceptr to, CUdeviceptr from,
                            size_t size) {
    if (!context_is_alive(to_context) || !context_is_alive(from_context)) return CUDA_ERROR_INVALID_CONTEXT;
    return touch_both(to, from, size);
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return touch_peers(to_context, from_context, to, from, size);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t size, CUstream stream) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (capture_takes(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &result)) return result;
    return touch_peers(to_context, from_context, to, from, size);
}
