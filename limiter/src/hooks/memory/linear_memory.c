/* Wrappers of the functions that allocate and free linear memory. A NULL output pointer is passed on to the driver,
 * which reports it. */
#include "books/pointers/pointers.h"
#include "books/pools/current_pools.h"
#include "books/pools/exports.h"
#include "books/pools/imports.h"
#include "books/pools/pool_guard.h"
#include "books/pools/pools.h"
#include "books/pools/recent_allocations.h"
#include "charge/release/release.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/external_memory.h"
#include "hooks/memory/ipc.h"
#include "hooks/memory/spill.h"
#include "hooks/pools/pool_charge.h"

#define PITCH_ALIGNMENT 512ULL /* bytes; a pitch that is aligned to it is valid on every architecture */

/* The functions from before CUDA 3.2, with 32-bit sizes and addresses, are still exported: dlsym finds them by the name
 * without a version suffix, cuGetProcAddress for a caller of that version. */
static CUresult free_v1(CUdeviceptr pointer) { return REAL(cuMemFree)((CUdeviceptr_v1)pointer); }

static CUresult finish_v1(struct attempt *attempt, CUresult result, CUdeviceptr_v1 *pointer) {
    if (attempt->is_refused) return result;
    CUdeviceptr wide = *pointer;
    attempt->driver_free = free_v1;
    result = attempt_finish(attempt, result, &wide);
    *pointer = (CUdeviceptr_v1)wide;
    return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (!pointer) return REAL(cuMemAlloc_v2)(pointer, bytes);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin("cuMemAlloc_v2", bytes);
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuMemAlloc_v2)(pointer, bytes);
    result = spill(&attempt, result, pointer, bytes);
    return attempt_finish(&attempt, result, pointer);
}

static uint64_t pitched_bytes(uint64_t width, uint64_t height) {
    uint64_t row_bytes = round_up(width, PITCH_ALIGNMENT);
    return height != 0 && row_bytes > UINT64_MAX / height ? UINT64_MAX : row_bytes * height;
}

static CUresult spill_pitched(struct attempt *attempt, CUresult result, CUdeviceptr *pointer, size_t *pitch,
                              size_t width, size_t height) {
    CUresult spilled = spill(attempt, result, pointer, pitched_bytes(width, height));
    if (spilled != result) *pitch = round_up(width, PITCH_ALIGNMENT);
    return spilled;
}

/* The driver chooses the pitch during the call, so the widest one is charged. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
    if (!pointer || !pitch) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin("cuMemAllocPitch_v2", pitched_bytes(width, height));
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    result = spill_pitched(&attempt, result, pointer, pitch, width, height);
    return attempt_finish(&attempt, result, pointer);
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned bytes) {
    if (!pointer) return REAL(cuMemAlloc)(pointer, bytes);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin("cuMemAlloc", bytes);
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++) result = REAL(cuMemAlloc)(pointer, bytes);
    return finish_v1(&attempt, result, pointer);
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned *pitch, unsigned width, unsigned height,
                                unsigned element) {
    if (!pointer) return REAL(cuMemAllocPitch)(pointer, pitch, width, height, element);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin("cuMemAllocPitch", pitched_bytes(width, height));
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuMemAllocPitch)(pointer, pitch, width, height, element);
    return finish_v1(&attempt, result, pointer);
}

/* Charged in full, because all of the managed memory may migrate to the card. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
    if (!pointer) return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    if (!container_has_managed_memory()) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin_managed("cuMemAllocManaged", bytes);
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuMemAllocManaged)(pointer, bytes, flags);
    return attempt_finish(&attempt, result, pointer);
}

static void check_current_pool(void) {
    HOLD_POOL_GUARD();
    pool_charge_check(current_pools_get());
}

/* After cuMemFree of a pointer that was not charged: it may be external memory, or a pool's. Freeing pool memory this
 * way synchronises the device, so the pool may shrink. */
static CUresult update_after_free(CUdeviceptr pointer, CUresult result) {
    if (result == CUDA_SUCCESS) external_memory_end(pointer);
    if (result == CUDA_SUCCESS && pools_any()) check_current_pool();
    return result;
}

static void forget_pool_pointer(CUdeviceptr pointer) {
    pools_subtract_used(recent_allocations_take(pointer));
    if (exports_any()) exports_free(pointer);
    if (imports_any()) imports_free(pointer);
}

/* Before the driver's call that frees a pointer: whether the pointer is charged; then its record is in `charge`.
 * Records are removed before the call, because another thread may be given the same pointer after it. So is a pool's
 * count of used bytes: a thread that asks the driver meanwhile only estimates it too high. */
static inline bool take_charge(CUdeviceptr pointer, struct pointer_charge *charge) {
    if (container_is_limited() && pointers_take(pointer, charge)) return true;
    forget_pool_pointer(pointer);
    return false;
}

static void release(CUdeviceptr pointer, struct pointer_charge charge, CUresult result) {
    if (result != CUDA_SUCCESS) charge.bytes = pointers_put_back(pointer, &charge);
    if (result == CUDA_SUCCESS)
        ipc_release(pointer, charge);
    else if (charge.bytes)
        (charge.is_managed ? release_managed : release_charge)(charge.card, charge.bytes);
}

/* After the driver's call that freed a charged pointer, which charge_begin_call was called before. */
static CUresult finish_free(int call_slot, CUdeviceptr pointer, struct pointer_charge charge, CUresult result) {
    release(pointer, charge, result);
    charge_end_call(call_slot);
    return result;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
    struct pointer_charge charge;
    if (!take_charge(pointer, &charge)) return update_after_free(pointer, REAL(cuMemFree_v2)(pointer));
    int call_slot = charge_begin_call();
    return finish_free(call_slot, pointer, charge, REAL(cuMemFree_v2)(pointer));
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    struct pointer_charge charge;
    if (!take_charge(pointer, &charge)) return REAL(cuMemFree)(pointer);
    int call_slot = charge_begin_call();
    return finish_free(call_slot, pointer, charge, REAL(cuMemFree)(pointer));
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    struct pointer_charge charge;
    if (!take_charge(pointer, &charge)) return REAL(cuMemFreeAsync)(pointer, stream);
    int call_slot = charge_begin_call();
    return finish_free(call_slot, pointer, charge, REAL(cuMemFreeAsync)(pointer, stream));
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    struct pointer_charge charge;
    if (!take_charge(pointer, &charge)) return REAL(cuMemFreeAsync_ptsz)(pointer, stream);
    int call_slot = charge_begin_call();
    return finish_free(call_slot, pointer, charge, REAL(cuMemFreeAsync_ptsz)(pointer, stream));
}
