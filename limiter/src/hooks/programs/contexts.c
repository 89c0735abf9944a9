/* Wrappers that create and end contexts. A context takes some 500 MiB: what the last one on the card took is reserved,
 * then the call is measured. When a context ends, the driver frees the allocations in it without a call for each. So
 * afterwards the driver is asked about every recorded pointer, and those that it no longer knows are released. */
#include <stdlib.h>

#include "books/pointers/pointers.h"
#include "books/pools/pool_ids.h"
#include "books/pools/pools.h"
#include "charge/measure/context_limits.h"
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "charge/measure/nvml_probe.h"
#include "charge/nvml/nvml_start.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "compute/gate_teardown.h"
#include "compute/turn_need.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/pools/pool_end.h"
#include "region/account.h"
#include "region/region.h"

/* The descriptor for slot locks has a high number, for which the kernel enlarges the process's table. In a process with
 * threads, and the driver starts some, that takes it 8 to 18 ms (an RCU grace period); so the descriptor is opened
 * before. */
EXPORT CUresult cuInit(unsigned flags) {
    if (container_is_limited()) (void)container_self();
    return REAL(cuInit)(flags);
}

struct creation {
    struct measured_call call;
    struct nvml_start nvml_start;
    CUdevice device;
    bool is_probed;
};

/* Bytes that the last context on the card took, 0 if unknown. */
static uint64_t expected_bytes(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, uuid) : -1;
    return card >= 0 ? __atomic_load_n(&region->cards[card].context_bytes, __ATOMIC_RELAXED) : 0;
}

/* NVML is initialised beside the driver's call where a probe can show afterwards that its figure follows this process;
 * else before it, so that the figure is seen to grow with the call. */
static void begin_on_card(struct creation *creation, const char *function_name, const uint8_t uuid[UUID_SIZE]) {
    uint64_t expected = expected_bytes(uuid);
    creation->is_probed = !nvml_usage_is_trusted() && nvml_probe_is_possible(creation->device, uuid, expected);
    if (!creation->is_probed) nvml_usage_start();
    turn_need_note_device(creation->device);
    reconcile_own(uuid, 0);
    creation->call = measured_call_begin_on(function_name, creation->device, expected);
    if (creation->is_probed && !creation->call.is_refused) creation->nvml_start = nvml_start_begin(uuid);
}

/* False if the creation is refused: the driver must not be called. */
static bool begin_create(struct creation *creation, const char *function_name, CUdevice device) {
    uint8_t uuid[UUID_SIZE];
    *creation = (struct creation){.call.function_name = function_name, .device = device};
    if (container_is_limited() && cards_of_device(device, uuid)) begin_on_card(creation, function_name, uuid);
    return !creation->call.is_refused;
}

/* The growth is the context's size only if no other call of this process was open beside it. */
static void record_context_bytes(const struct measured_call *call) {
    uint64_t bytes = measured_call_growth_alone(call);
    if (bytes == 0) return;
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region) return;
    int card = account_find_or_add_card(region, call->uuid);
    if (card >= 0) __atomic_store_n(&region->cards[card].context_bytes, bytes, __ATOMIC_RELAXED);
}

static bool fits_and_record(struct creation *creation, CUresult result) {
    if (!creation->call.is_limited) return true;
    nvml_start_finish(&creation->nvml_start);
    if (result == CUDA_SUCCESS && creation->is_probed) nvml_probe(creation->device, creation->call.uuid);
    bool is_fitting = measured_call_fits(&creation->call, result);
    if (result == CUDA_SUCCESS) record_context_bytes(&creation->call);
    return is_fitting;
}

static bool is_active(CUdevice device) {
    unsigned flags;
    int active = 0;
    return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && active;
}

static void release_primary(CUdevice device) {
    if (functions_has(FN_cuDevicePrimaryCtxRelease_v2))
        REAL(cuDevicePrimaryCtxRelease_v2)(device);
    else
        REAL(cuDevicePrimaryCtxRelease)(device);
}

/* Only the first reference creates the primary context. */
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (!container_is_limited() || is_active(device)) return REAL(cuDevicePrimaryCtxRetain)(context, device);
    struct creation creation;
    if (!begin_create(&creation, "cuDevicePrimaryCtxRetain", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    if (fits_and_record(&creation, result)) return result;
    release_primary(device);
    return measured_call_refuse(&creation.call);
}

static CUresult finish_create(struct creation *creation, CUresult result, const CUcontext *context) {
    if (fits_and_record(creation, result)) return result;
    REAL(cuCtxDestroy_v2)(*context);
    return measured_call_refuse(&creation->call);
}

EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    struct creation creation;
    if (!begin_create(&creation, "cuCtxCreate", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate)(context, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    struct creation creation;
    if (!begin_create(&creation, "cuCtxCreate_v2", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v2)(context, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags,
                               CUdevice device) {
    struct creation creation;
    if (!begin_create(&creation, "cuCtxCreate_v3", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v3)(context, affinity, count, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device) {
    struct creation creation;
    if (!begin_create(&creation, "cuCtxCreate_v4", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v4)(context, parameters, flags, device), context);
}

/* Neither reserved nor recorded: a green context's size depends on its resources, so the last one's says nothing. */
EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
    nvml_usage_start();
    struct measured_call call = measured_call_begin_on("cuGreenCtxCreate", device, 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuGreenCtxCreate)(context, description, device, flags);
    if (measured_call_fits(&call, result)) return result;
    REAL(cuGreenCtxDestroy)(*context);
    return measured_call_refuse(&call);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    CUresult result = REAL(cuCtxFromGreenCtx)(context, green);
    if (result == CUDA_SUCCESS) measured_call_reconcile_if_due();
    return result;
}

/* CUDA_ERROR_INVALID_VALUE means that the driver does not know the pointer, with or without a current context (measured
 * on an H200, driver 580); other errors say nothing about the pointer. Memory of a device's pool outlives the context,
 * so the driver still knows it. */
static bool is_freed(CUdeviceptr pointer) {
    CUcontext owner;
    return REAL(cuPointerGetAttribute)((void *)&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
           CUDA_ERROR_INVALID_VALUE;
}

static void release_pointer(CUdeviceptr pointer) {
    struct pointer_charge charge;
    if (!pointers_take(pointer, &charge) || !charge.bytes) return;
    (charge.is_managed ? release_managed : release_charge)(charge.card, charge.bytes);
}

static void release_freed_pointers(void) {
    size_t count;
    uint64_t *pointers = pointers_list(&count);
    for (size_t i = 0; i < count; i++)
        if (is_freed(pointers[i])) release_pointer(pointers[i]);
    free(pointers);
}

/* Pools may end with the primary context of their device. All are dropped; a pool that is still in use is added again
 * at its next use. */
static void drop_pools(void) {
    struct pool removed;
    while ((removed = pools_remove_any()).handle) pool_end(&removed, pool_ids_take((uint64_t)removed.handle));
}

/* After the driver's call. */
static CUresult finish_destroy(int call_slot, CUresult result, bool are_pools_gone) {
    if (result == CUDA_SUCCESS && are_pools_gone) drop_pools();
    pools_resume();
    if (result == CUDA_SUCCESS) release_freed_pointers();
    if (result == CUDA_SUCCESS) graph_memory_correct(-1, false);
    charge_end_call(call_slot);
    if (result == CUDA_SUCCESS) reconcile_every_card(0);
    return result;
}

/* Returns the slot of charge_begin_call. */
static int begin_destroy(void) {
    gate_teardown_contexts();
    int call_slot = charge_begin_call();
    local_memory_forget_all();
    pools_suspend();
    return call_slot;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDestroy)(context);
    int call_slot = begin_destroy();
    CUresult result = REAL(cuCtxDestroy)(context);
    if (result == CUDA_SUCCESS) context_limits_end(context);
    return finish_destroy(call_slot, result, false);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDestroy_v2)(context);
    int call_slot = begin_destroy();
    CUresult result = REAL(cuCtxDestroy_v2)(context);
    if (result == CUDA_SUCCESS) context_limits_end(context);
    return finish_destroy(call_slot, result, false);
}

/* The context may live on: other references to it may be left. Then charges of its limits stay. */
EXPORT CUresult cuCtxDetach(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDetach)(context);
    int call_slot = begin_destroy();
    return finish_destroy(call_slot, REAL(cuCtxDetach)(context), false);
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context) {
    if (!container_is_limited()) return REAL(cuGreenCtxDestroy)(context);
    CUcontext inside = NULL;
    REAL(cuCtxFromGreenCtx)(&inside, context);
    int call_slot = begin_destroy();
    CUresult result = REAL(cuGreenCtxDestroy)(context);
    if (result == CUDA_SUCCESS) context_limits_end_green(inside);
    return finish_destroy(call_slot, result, false);
}

/* Only the last reference ends the primary context. */
static CUresult finish_primary(int call_slot, CUresult result, CUdevice device) {
    if (result == CUDA_SUCCESS && !is_active(device)) context_limits_end_primary(device);
    return finish_destroy(call_slot, result, true);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxRelease)(device);
    int call_slot = begin_destroy();
    return finish_primary(call_slot, REAL(cuDevicePrimaryCtxRelease)(device), device);
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxRelease_v2)(device);
    int call_slot = begin_destroy();
    return finish_primary(call_slot, REAL(cuDevicePrimaryCtxRelease_v2)(device), device);
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxReset)(device);
    int call_slot = begin_destroy();
    return finish_primary(call_slot, REAL(cuDevicePrimaryCtxReset)(device), device);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (!container_is_limited()) return REAL(cuDevicePrimaryCtxReset_v2)(device);
    int call_slot = begin_destroy();
    return finish_primary(call_slot, REAL(cuDevicePrimaryCtxReset_v2)(device), device);
}
