/* Wrappers of a device's primary context, which lives until its last reference is released. This file counts the
 * references, so that releasing a spare one costs nothing but the driver's call: what a context's end requires (a turn
 * is given back, launches are flushed, NVML is asked) is done for the last one only. */
#include <string.h>

#include "charge/measure/context_limits.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "driver/primary_context.h"
#include "hooks/programs/context_creation.h"
#include "hooks/programs/context_end.h"
#include "process/fork.h"
#include "region/region.h"

/* How long the last release waits for those of spare references: 100 ms in all. */
#define SPARE_POLL (50 * NS_PER_US)
enum { SPARE_TRIES = 2000 };

/* References that the program took through these wrappers, by device. Atomic. References that were taken otherwise are
 * missing, and those that a reset has ended may still be counted: then the end of the context shows afterwards. */
static int references[REGION_CARDS];

/* Threads that release a spare reference now, by device. Atomic. */
static int spare_releases[REGION_CARDS];

static void forget(void) {
    memset(references, 0, sizeof references);
    memset(spare_releases, 0, sizeof spare_releases);
}
FORGET_IN_CHILD(forget);

static bool is_counted(CUdevice device) { return device >= 0 && device < REGION_CARDS; }

/* Only the first reference creates the primary context. */
static CUresult retain(CUcontext *context, CUdevice device) {
    if (primary_context_is_active(device)) return REAL(cuDevicePrimaryCtxRetain)(context, device);
    struct context_creation creation;
    if (!context_creation_begin(&creation, "cuDevicePrimaryCtxRetain", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    if (context_creation_fits(&creation, result)) return result;
    (void)primary_context_release(device);
    return measured_call_refuse(&creation.call);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxRetain)(context, device);
    CUresult result = retain(context, device);
    if (result == CUDA_SUCCESS && is_counted(device)) __atomic_fetch_add(&references[device], 1, __ATOMIC_RELAXED);
    return result;
}

static void finish(const struct context_end *end, CUdevice device, CUresult result) {
    bool has_ended = result == CUDA_SUCCESS && !primary_context_is_active(device);
    if (has_ended) context_limits_end_primary(device);
    context_end_finish(end, has_ended);
}

/* Takes a reference off the count, and returns how many there were. */
static int take_reference(CUdevice device) {
    int count = __atomic_load_n(&references[device], __ATOMIC_SEQ_CST);
    while (count > 0 && !__atomic_compare_exchange_n(&references[device], &count, count - 1, true, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST)) {
    }
    return count;
}

/* Whether the reference that is released now is a spare one; then end_spare is called after the driver's call. */
static bool begin_spare(CUdevice device) {
    if (!is_counted(device)) return false;
    __atomic_fetch_add(&spare_releases[device], 1, __ATOMIC_SEQ_CST);
    bool is_spare = take_reference(device) > 1;
    if (!is_spare) __atomic_fetch_sub(&spare_releases[device], 1, __ATOMIC_SEQ_CST);
    return is_spare;
}

static void end_spare(CUdevice device) { __atomic_fetch_sub(&spare_releases[device], 1, __ATOMIC_SEQ_CST); }

/* Returns when the spare references that were taken off the count before are released, so that this one is the driver's
 * last too. */
static void await_spares(CUdevice device) {
    for (int tries = 0; is_counted(device) && tries < SPARE_TRIES; tries++) {
        if (__atomic_load_n(&spare_releases[device], __ATOMIC_SEQ_CST) == 0) return;
        system_sleep(SPARE_POLL);
    }
}

static CUresult release_last(CUdevice device, CUresult (*driver_call)(CUdevice)) {
    await_spares(device);
    struct context_end end = context_end_begin(device, NULL);
    CUresult result = driver_call(device);
    finish(&end, device, result);
    return result;
}

/* After a reset no reference keeps the context, so that any release may find it ended. */
static CUresult release_spare(CUdevice device, CUresult (*driver_call)(CUdevice)) {
    CUresult result = driver_call(device);
    end_spare(device);
    if (result != CUDA_SUCCESS || primary_context_is_active(device)) return result;
    struct context_end end = context_end_begin(device, NULL);
    finish(&end, device, result);
    return result;
}

static CUresult release(CUdevice device, CUresult (*driver_call)(CUdevice)) {
    return begin_spare(device) ? release_spare(device, driver_call) : release_last(device, driver_call);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxRelease)(device);
    return release(device, REAL(cuDevicePrimaryCtxRelease));
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxRelease_v2)(device);
    return release(device, REAL(cuDevicePrimaryCtxRelease_v2));
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxReset)(device);
    return release_last(device, REAL(cuDevicePrimaryCtxReset));
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxReset_v2)(device);
    return release_last(device, REAL(cuDevicePrimaryCtxReset_v2));
}
