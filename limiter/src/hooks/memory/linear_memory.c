/* The functions that allocate and free. A NULL for the pointer's place goes to the driver as it is. */
#include "books/current_pools.h"
#include "books/exports.h"
#include "books/imports.h"
#include "books/ipc_exports.h"
#include "books/pointers.h"
#include "books/pool_guard.h"
#include "books/pools.h"
#include "books/recent_allocations.h"
#include "charge/attempt.h"
#include "charge/charge.h"
#include "charge/reconcile.h"
#include "charge/release.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/external_memory.h"
#include "hooks/memory/spill.h"
#include "hooks/pools/pool_charge.h"

/* The pitch that every architecture's driver is content with. */
#define PITCH_ALIGNMENT 512ULL

/* The entries of before CUDA 3.2, with sizes and addresses of 32 bits, are exported still: dlsym gives them by the name
 * without a version, cuGetProcAddress to a caller of that version. */
static CUresult free_v1(CUdeviceptr pointer) { return REAL(cuMemFree)((CUdeviceptr_v1)pointer); }

static CUresult finish_v1(struct attempt *attempt, CUresult result, CUdeviceptr_v1 *pointer) {
    CUdeviceptr wide = *pointer;
    attempt->driver_free = free_v1;
    result = attempt_finish(attempt, result, &wide);
    *pointer = (CUdeviceptr_v1)wide;
    return result;
}

#define FINISH(pointer) _Generic((pointer), CUdeviceptr *: attempt_finish, CUdeviceptr_v1 *: finish_v1)

/* The rest of an allocating function's body after `attempt_begin`; the arguments are the real function's. */
#define ALLOCATE(attempt, name, pointer, ...)                      \
    do {                                                           \
        if ((attempt).is_refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                           \
        do result = REAL(name)(pointer, __VA_ARGS__);              \
        while (attempt_retry(&(attempt), result));                 \
        return FINISH(pointer)(&(attempt), result, pointer);       \
    } while (0)

/* The same, with `spilled`: what becomes of `result` where the card is full. */
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

/* The pitch is the driver's choice, made in the call: charged is the widest. */
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

/* Managed memory may all come to lie on the card: charged in full. */
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
    pool_guard_enter();
    pool_charge_check(current_pools_get());
    pool_guard_leave();
}

/* Of a pool's memory the free waits for the device, and the pool may shrink. */
static CUresult update_after_free(CUdeviceptr pointer, CUresult result) {
    if (result == CUDA_SUCCESS) external_memory_end(pointer);
    if (result == CUDA_SUCCESS && pools_any()) check_current_pool();
    return result;
}

static CUresult update_nothing(CUdeviceptr pointer, CUresult result) {
    (void)pointer;
    return result;
}

/* What a pool's pointer is known for. */
static void forget_pool_pointer(CUdeviceptr pointer) {
    pools_subtract_used(recent_allocations_take(pointer));
    if (exports_any()) exports_free(pointer);
    if (imports_any()) imports_free(pointer);
}

/* Taken before the driver's call, for after it another thread may be given the same pointer; and so is a pool's use,
 * for who asks the driver meanwhile counts it in, which is no harm. What was never charged goes to the driver as it is,
 * and `after` sees to it. */
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
