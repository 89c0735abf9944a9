#include "charge/measured_call.h"

#include "charge/nvml_usage.h"
#include "charge/reconcile.h"
#include "charge/refusals.h"
#include "charge/release.h"
#include "container/container.h"
#include "driver/cards.h"
#include "region/account.h"

/* Bytes charged to this process on the call's card. */
static uint64_t own_charge(const struct measured_call *call) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    int slot = region ? container_slot(region) : -1;
    return card >= 0 && slot >= 0 ? __atomic_load_n(&region->slots[slot].used[card], __ATOMIC_RELAXED) : 0;
}

static uint64_t own_calls(void) {
    const struct region *region = container_region();
    return region ? account_calls(region, container_slot(region)) : 0;
}

/* Only until NVML has shown that it follows us. */
static uint64_t figure(const struct measured_call *call) {
    struct nvml_usage figures;
    if (call->is_light || nvml_usage_is_trusted() || !nvml_usage_read(call->uuid, &figures)) return 0;
    uint64_t bytes;
    bool is_known = nvml_usage_of_process(&figures, container_self().pid, &bytes);
    nvml_usage_free(&figures);
    return is_known ? bytes : 0;
}

static void begin(struct measured_call *call, uint64_t expected) {
    container_join(call->uuid);
    call->call_slot = expected ? charge_begin_call() : -1;
    call->charged = own_charge(call);
    call->calls = own_calls();
    call->figure = figure(call);
    if (expected == 0 || charge_reserve(call->what, call->uuid, expected, &call->reservation)) return;
    call->is_refused = true;
    charge_end_call(call->call_slot);
}

static struct measured_call begin_on_current(const char *what, uint64_t expected, bool is_light) {
    struct measured_call call = {.what = what, .is_light = is_light};
    call.is_counted = container_is_limited() && cards_current(call.uuid);
    if (call.is_counted) begin(&call, expected);
    return call;
}

struct measured_call measured_call_begin(const char *what, uint64_t expected) {
    return begin_on_current(what, expected, false);
}

struct measured_call measured_call_begin_light(const char *what) { return begin_on_current(what, 0, true); }

struct measured_call measured_call_begin_on(const char *what, CUdevice device, uint64_t expected) {
    struct measured_call call = {.what = what};
    call.is_counted = container_is_limited() && cards_of_device(device, call.uuid);
    if (call.is_counted) begin(&call, expected);
    return call;
}

uint64_t measured_call_growth(const struct measured_call *call) {
    uint64_t now = own_charge(call);
    return now > call->charged ? now - call->charged : 0;
}

/* None was under way beside this one, which has left, and none has begun. */
uint64_t measured_call_growth_alone(const struct measured_call *call) {
    bool is_alone = own_calls() == call->calls - (call->call_slot >= 0);
    return is_alone ? measured_call_growth(call) : 0;
}

/* A refusal needs both: what was there before the call, or came by another's, is no reason to undo it. */
static bool is_over(const struct measured_call *call) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    return measured_call_growth(call) > 0 && account_used(region, card) > container_memory_limit(call->uuid);
}

static bool look_soon(const uint8_t uuid[UUID_SIZE], unsigned own) {
    reconcile_soon();
    return reconcile_if_due(uuid, own, false);
}

static bool settle(const struct measured_call *call) {
    unsigned own = call->call_slot >= 0;
    if (figure(call) > call->figure) nvml_usage_trust();
    return call->is_light ? look_soon(call->uuid, own) : reconcile_own(call->uuid, own);
}

/* What is kept without use is no reason to refuse. */
static bool fits_trimmed(const struct measured_call *call) {
    int call_slot = charge_begin_call();
    charge_trim_idle(call->uuid);
    charge_end_call(call_slot);
    reconcile_own(call->uuid, call->call_slot >= 0);
    return !is_over(call);
}

/* Where other threads' calls keep it from being measured now, the claim stands until the next time. */
bool measured_call_fits(struct measured_call *call, CUresult result) {
    if (!call->is_counted) return true;
    bool is_settled = result == CUDA_SUCCESS && settle(call);
    bool is_left = result == CUDA_SUCCESS && nvml_usage_is_trusted();
    if (call->reservation.bytes && !is_settled && !is_left)
        release_charge(call->reservation.card, call->reservation.bytes);
    bool is_fitting = !is_settled || !is_over(call) || fits_trimmed(call);
    charge_end_call(call->call_slot);
    return is_fitting;
}

CUresult measured_call_undone(struct measured_call *call) {
    uint64_t growth = measured_call_growth(call);
    reconcile_own(call->uuid, 0);
    refusals_report(call->what, call->uuid, growth);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void measured_call_reconcile(void) {
    uint8_t uuid[UUID_SIZE];
    if (container_is_limited() && cards_current(uuid)) reconcile_own(uuid, 0);
}

void measured_call_reconcile_if_due(void) {
    uint8_t uuid[UUID_SIZE];
    if (container_is_limited() && cards_current(uuid)) look_soon(uuid, 0);
}
