#include "hooks/programs/context_creation.h"

#include "charge/measure/nvml_probe.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/reconcile.h"
#include "compute/gate/turn_need.h"
#include "container/container.h"
#include "driver/cards.h"
#include "hooks/programs/space_client.h"
#include "region/account.h"
#include "region/region.h"

/* Bytes that the last context on the card took, 0 if unknown. */
static uint64_t expected_bytes(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, uuid) : -1;
    return card >= 0 ? __atomic_load_n(&region->cards[card].context_bytes, __ATOMIC_RELAXED) : 0;
}

/* NVML is initialised beside the driver's call where a probe can show afterwards that its figure follows this process;
 * else before it, so that the figure is seen to grow with the call. */
static void begin_on_card(struct context_creation *creation, const char *function_name, const uint8_t uuid[UUID_SIZE]) {
    uint64_t expected = expected_bytes(uuid);
    creation->is_probed = !nvml_usage_is_trusted() && nvml_probe_is_possible(creation->device, uuid, expected);
    if (!creation->is_probed) nvml_usage_start();
    turn_need_note_device(creation->device);
    reconcile_own(uuid, 0);
    creation->call = measured_call_begin_on(function_name, creation->device, expected);
    if (creation->is_probed && !creation->call.is_refused) creation->nvml_start = nvml_start_begin(uuid);
}

bool context_creation_begin(struct context_creation *creation, const char *function_name, CUdevice device) {
    uint8_t uuid[UUID_SIZE];
    *creation = (struct context_creation){.call.function_name = function_name, .device = device};
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

bool context_creation_fits(struct context_creation *creation, CUresult result) {
    space_client_explain(creation->call.function_name, result);
    if (!creation->call.is_limited) return true;
    nvml_start_finish(&creation->nvml_start);
    if (result == CUDA_SUCCESS && creation->is_probed) nvml_probe(creation->device, creation->call.uuid);
    bool is_fitting = measured_call_fits(&creation->call, result);
    if (result == CUDA_SUCCESS) record_context_bytes(&creation->call);
    return is_fitting;
}
