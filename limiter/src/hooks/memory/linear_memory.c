/* Wrappers of the functions that allocate and free linear memory. A NULL output pointer is passed on to the driver,
 * which reports it. */
#include "books/pointers/ipc_exports.h"
#include "books/pointers/pointers.h"
#include "books/pools/current_pools.h"
#include "books/pools/exports.h"
#include "books/pools/imports.h"
#include "books/pools/pool_guard.h"
#include "books/pools/pools.h"
#include "books/pools/recent_allocations.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/external_memory.h"
#include "hooks/memory/spill.h"
#include "hooks/pools/pool_charge.h"

#define PITCH_ALIGNMENT 512ULL /* bytes; a pitch that is aligned to it is valid on every architecture */

/* The functions from before CUDA 3.2, with 32-bit sizes and addresses, are still exported: dlsym finds them by the name
 * without a version suffix, cuGetProcAddress for a caller of that version. */
static CUresult free_v1(CUdeviceptr pointer) { return REAL(cuMemFree)((CUdeviceptr_v1)pointer); }

static CUresult finish_v1(struct attempt *attempt, CUresult result, CUdeviceptr_v1 *pointer) {
    CUdeviceptr wide = *pointer;
    attempt->driver_free = free_v1;
    result = attempt_finish(attempt, result, &wide);
    *pointer = (CUdeviceptr_v1)wide;
    return result;
}

#define FINISH(pointer) _Generic((pointer), CUdeviceptr *: attempt_finish, CUdeviceptr_v1 *: finish_v1)

/* Rest of an allocating wrapper's body after `attempt_begin`; the arguments from `pointer` on are the real
 * function's. */
#define ALLOCATE(attempt, name, pointer, ...)                      \
    do {                                                           \
        if ((attempt).is_refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                           \
        do result = REAL(name)(pointer, __VA_ARGS__);              \
        while (attempt_retry(&(attempt), result));                 \
        return FINISH(pointer)(&(attempt), result, pointer);       \
    } while (0)

/* Like ALLOCATE; `spilled` is an expression that replaces `result`, and may serve the allocation from managed
 * memory. */
#define ALLOCATE_OR_SPILL(attempt, spilled, name, pointer, ...)    \
    do {                                                           \
        if ((attempt).is_refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                           \
        do result = REAL(name)(pointer, __VA_ARGS__);              \
        while (attempt_retry(&(attempt), result));                 \
        return attempt_finish(&(attempt), spilled, pointer);       \
    } while (0)

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (!pointer) return REAL(cuMemAlloc_v2)(pointer, bytes);
    struct attempt attempt = attempt_begin("cuMemAlloc_v2", bytes);
    ALLOCATE_OR_SPILL(attempt, spill(&attempt, result, pointer, bytes), cuMemAlloc_v2, pointer, bytes);
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
    struct attempt attempt = attempt_begin("cuMemAllocPitch_v2", pitched_bytes(width, height));
    ALLOCATE_OR_SPILL(attempt, spill_pitched(&attempt, result, pointer, pitch, width, height), cuMemAllocPitch_v2,
                      pointer, pitch, width, height, element);
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned bytes) {
    if (!pointer) return REAL(cuMemAlloc)(pointer, bytes);
    struct attempt attempt = attempt_begin("cuMemAlloc", bytes);
    ALLOCATE(attempt, cuMemAlloc, pointer, bytes);
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned *pitch, unsigned width, unsigned height,
                                unsigned element) {
    if (!pointer) return REAL(cuMemAllocPitch)(pointer, pitch, width, height, element);
    struct attempt attempt = attempt_begin("cuMemAllocPitch", pitched_bytes(width, height));
    ALLOCATE(attempt, cuMemAllocPitch, pointer, pitch, width, height, element);
}

/* Charged in full, because all of the managed memory may migrate to the card. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
    if (!pointer) return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    struct attempt attempt = attempt_begin_managed("cuMemAllocManaged", bytes);
    ALLOCATE(attempt, cuMemAllocManaged, pointer, bytes, flags);
}

static CUresult finish_free(CUdeviceptr pointer, struct pointer_charge charge, CUresult result) {
    if (result != CUDA_SUCCESS) charge.bytes = pointers_put_back(pointer, &charge);
    if (result == CUDA_SUCCESS && charge.bytes && ipc_exports_remove(pointer)) reconcile_others();
    if (charge.bytes) (charge.is_managed ? release_managed : release_charge)(charge.card, charge.bytes);
    return result;
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

static CUresult update_nothing(CUdeviceptr pointer, CUresult result) {
    (void)pointer;
    return result;
}

static void forget_pool_pointer(CUdeviceptr pointer) {
    pools_subtract_used(recent_allocations_take(pointer));
    if (exports_any()) exports_free(pointer);
    if (imports_any()) imports_free(pointer);
}

/* Body of a freeing wrapper; `update` is called for a pointer that is not charged. Records are removed before the
 * driver's call, because another thread may be given the same pointer after it. So is a pool's count of used bytes: a
 * thread that asks the driver meanwhile only estimates it too high. */
#define FREE(name, update, pointer, ...)                                         \
    do {                                                                         \
        struct pointer_charge charge;                                            \
        if (!container_is_limited() || !pointers_take(pointer, &charge)) {       \
            forget_pool_pointer(pointer);                                        \
            return update(pointer, REAL(name)(__VA_ARGS__));                     \
        }                                                                        \
        int call_slot = charge_begin_call();                                     \
        CUresult result = finish_free(pointer, charge, REAL(name)(__VA_ARGS__)); \
        charge_end_call(call_slot);                                              \
        return result;                                                           \
    } while (0)

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { FREE(cuMemFree_v2, update_after_free, pointer, pointer); }

EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { FREE(cuMemFree, update_nothing, pointer, pointer); }

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    FREE(cuMemFreeAsync, update_nothing, pointer, pointer, stream);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    FREE(cuMemFreeAsync_ptsz, update_nothing, pointer, pointer, stream);
}
