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
static CUresult free_old(CUdeviceptr pointer) { return REAL(cuMemFree)((CUdeviceptr_v1)pointer); }

static CUresult finish_old(struct attempt *attempt, CUresult result, CUdeviceptr_v1 *pointer) {
    CUdeviceptr wide = *pointer;
    attempt->free = free_old;
    result = attempt_finish(attempt, result, &wide);
    *pointer = (CUdeviceptr_v1)wide;
    return result;
}

#define FINISH(pointer) _Generic((pointer), CUdeviceptr *: attempt_finish, CUdeviceptr_v1 *: finish_old)

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

static uint64_t pitched(uint64_t width, uint64_t height) {
    uint64_t row = round_up(width, PITCH_ALIGNMENT);
    return height != 0 && row > UINT64_MAX / height ? UINT64_MAX : row * height;
}

static CUresult spill_pitched(struct attempt *attempt, CUresult result, CUdeviceptr *pointer, size_t *pitch,
                              size_t width, size_t height) {
    CUresult spilled = spill(attempt, result, pointer, pitched(width, height));
    if (spilled != result) *pitch = round_up(width, PITCH_ALIGNMENT);
    return spilled;
}

/* The pitch is the driver's choice, made in the call: charged is the widest. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
    if (!pointer || !pitch) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    struct attempt attempt = attempt_begin("cuMemAllocPitch_v2", pitched(width, height));
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
    struct attempt attempt = attempt_begin("cuMemAllocPitch", pitched(width, height));
    ALLOCATE(attempt, cuMemAllocPitch, pointer, pitch, width, height, element);
}

/* Managed memory may all come to lie on the card: charged in full. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
    if (!pointer) return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    struct attempt attempt = attempt_begin_managed("cuMemAllocManaged", bytes);
    ALLOCATE(attempt, cuMemAllocManaged, pointer, bytes, flags);
}

static CUresult take_back(CUdeviceptr pointer, struct pointer_charge holding, CUresult result) {
    if (result != CUDA_SUCCESS) holding.bytes = pointers_put_back(pointer, &holding);
    if (result == CUDA_SUCCESS && holding.bytes && ipc_exports_remove(pointer)) reconcile_others();
    if (holding.bytes) (holding.is_managed ? release_managed : release_charge)(holding.card, holding.bytes);
    return result;
}

static void look_at_current_pool(void) {
    pool_guard_enter();
    pool_charge_check(current_pools_get());
    pool_guard_leave();
}

/* Of a pool's memory the free waits for the device, and the pool may shrink. */
static CUresult look(CUdeviceptr pointer, CUresult result) {
    if (result == CUDA_SUCCESS) external_end(pointer);
    if (result == CUDA_SUCCESS && pools_any()) look_at_current_pool();
    return result;
}

static CUresult pass(CUdeviceptr pointer, CUresult result) {
    (void)pointer;
    return result;
}

/* What a pool's pointer is known for. */
static void forget(CUdeviceptr pointer) {
    pools_subtract_used(recent_allocations_take(pointer));
    if (exports_any()) exports_free(pointer);
    if (imports_any()) imports_free(pointer);
}

/* Taken before the driver's call, for after it another thread may be given the same pointer; and so is a pool's use,
 * for who asks the driver meanwhile counts it in, which is no harm. What was never charged goes to the driver as it is,
 * and `after` sees to it. */
#define FREE(name, after, pointer, ...)                                         \
    do {                                                                        \
        struct pointer_charge holding;                                          \
        if (!container_is_limited() || !pointers_take(pointer, &holding)) {     \
            forget(pointer);                                                    \
            return after(pointer, REAL(name)(__VA_ARGS__));                     \
        }                                                                       \
        int call_slot = charge_begin_call();                                    \
        CUresult result = take_back(pointer, holding, REAL(name)(__VA_ARGS__)); \
        charge_end_call(call_slot);                                             \
        return result;                                                          \
    } while (0)

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { FREE(cuMemFree_v2, look, pointer, pointer); }

EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { FREE(cuMemFree, pass, pointer, pointer); }

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    FREE(cuMemFreeAsync, pass, pointer, pointer, stream);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    FREE(cuMemFreeAsync_ptsz, pass, pointer, pointer, stream);
}
