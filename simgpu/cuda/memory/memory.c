/* cuMemAlloc and its siblings, and host memory.
 *
 * Device addresses are made up: no byte is behind them. An allocation of up to 1 MiB shares pages of 2 MiB with others,
 * a larger one is rounded up to pages. So totals agree with those of a real card. */
#include "cuda/memory/memory.h"

#include <sys/mman.h>

#include "cuda/allocation/allocation.h"
#include "cuda/allocation/pages.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/memory/allocation_free.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/stream_waits.h"
#include "cuda/vmm/addresses.h"
#include "hardware/export.h"
#include "hardware/units.h"
#include "ledger/accounts.h"

#define SMALL_LIMIT MIB
#define PITCH       512

CUresult memory_allocate(CUcontext context, CUdeviceptr *address, uint64_t size, bool for_arrays) {
    struct card card;
    if (size > UINT64_C(1) << 50) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!device_card(context->device, &card)) return CUDA_ERROR_UNKNOWN; /* even when a page has room */
    struct allocation made = {.size = size,
                              .kind = size > SMALL_LIMIT ? KIND_DEVICE : KIND_SMALL,
                              .context = context,
                              .device = context->device};
    made.charged = round_up(size, made.kind == KIND_DEVICE ? PAGE : SMALL_UNIT);
    CUresult result = made.kind == KIND_DEVICE ? device_charge(context->device, made.charged)
                                               : pages_take(context->device, made.charged, for_arrays, &made.address);
    if (result != CUDA_SUCCESS) return result;
    result = allocation_add(made, address);
    if (result != CUDA_SUCCESS) allocation_give_back(&made);
    return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    CUcontext context;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(context, address, size, false);
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *out, size_t width, size_t height,
                                   unsigned element_size) {
    CUcontext context;
    size_t bytes;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    CUresult result = context_current(&context);
    size_t pitch = round_up(width, PITCH);
    bool is_element_size = element_size == 4 || element_size == 8 || element_size == 16;
    if (result != CUDA_SUCCESS) return result;
    if (!address || !out || !is_element_size || pitch == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(pitch, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = pitch;
    return memory_allocate(context, address, bytes, false);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    struct allocation *found = allocation_at(address);
    if (address == 0) return CUDA_SUCCESS;
    if (!found || !allocation_is_freeable(found)) return CUDA_ERROR_INVALID_VALUE;
    bool of_pool = found->kind == KIND_POOL;
    CUdevice device = found->device;
    CUresult result = allocation_free(found);
    if (of_pool) pools_trim(device); /* cuMemFree waits for the device: it is a synchronization */
    return result;
}

static void *map_host(size_t size) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static CUresult allocate_host(CUdeviceptr *out, size_t size, enum allocation_kind kind) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!out || size == 0) return CUDA_ERROR_INVALID_VALUE;
    void *mapped = map_host(size);
    if (!mapped) return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation made = {.address = (uintptr_t)mapped, .size = size, .kind = kind, .context = context};
    return allocation_add(made, out);
}

/* Managed memory is charged to a card when a kernel there touches it; no simulated kernel does. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    return allocate_host(address, size, KIND_MANAGED);
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
    CUdeviceptr address = 0;
    (void)flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (!pointer) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate_host(&address, size, KIND_HOST);
    if (result == CUDA_SUCCESS)
        *pointer = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): the address is that pointer */
    return result;
}

EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t size) { return cuMemHostAlloc(pointer, size, 0); }

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags) {
    (void)flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!address || !allocation_at((uintptr_t)pointer)) return CUDA_ERROR_INVALID_VALUE;
    *address = (uintptr_t)pointer;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *pointer) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    struct allocation *found = allocation_at((uintptr_t)pointer);
    if (!found || found->kind != KIND_HOST) return CUDA_ERROR_INVALID_VALUE;
    return allocation_free(found);
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags) {
    (void)flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return pointer && size > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemHostUnregister(void *pointer) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return pointer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    CUcontext context;
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
    if (!device_card(context->device, &card)) return CUDA_ERROR_UNKNOWN;
    uint64_t used = ledger_used(card.uuid);
    *total = card.memory - card.reserved;
    *free = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}

/* The 32-bit forms of CUDA 2 fail, because they need a context of that version, which no program can create.
 * NOLINTBEGIN(readability-non-const-parameter): the signatures are NVIDIA's */
EXPORT CUresult cuMemGetInfo(unsigned *free, unsigned *total) {
    (void)free;
    (void)total;
    return CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned size) {
    (void)address;
    (void)size;
    return CUDA_ERROR_INVALID_CONTEXT;
}
/* NOLINTEND(readability-non-const-parameter) */

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address) {
    (void)address;
    return CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct allocation *found = allocation_holding(address);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = found->address;
    if (size) *size = found->size;
    return CUDA_SUCCESS;
}

/* Memory that this driver does not know has no type; it is the host's, and not pinned. */
static CUresult get_memory_type(unsigned *type, CUdeviceptr ptr, const struct allocation *found) {
    if (!type || (!found && !mapping_holds(ptr, 1))) return CUDA_ERROR_INVALID_VALUE;
    *type = found && found->kind == KIND_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

/* Needs no current context, as on a real card. Only some attributes are simulated. */
EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct allocation *found = allocation_holding(address);
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return get_memory_type(data, address, found);
    if (!data || !found) return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)data = found->context;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)data = found->device;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *(CUmemoryPool *)data = found->pool;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}
