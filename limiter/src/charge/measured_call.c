#include "charge/measured_call.h"

#include "charge/nvml_usage.h"
#include "charge/reconcile.h"
#include "charge/refusals.h"
#include "container/container.h"
#include "driver/cards.h"
#include "region/account.h"

/* Bytes charged to this process on the call's card. */
static uint64_t own_charge(const struct measured *call) {
    const struct region *region = place_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    int slot = region ? place_slot(region) : -1;
    return card >= 0 && slot >= 0 ? __atomic_load_n(&region->slots[slot].used[card], __ATOMIC_RELAXED) : 0;
}

static uint64_t own_calls(void) {
    const struct region *region = place_region();
    return region ? account_calls(region, place_slot(region)) : 0;
}

/* Only until NVML has shown that it follows us. */
static uint64_t figure(const struct measured *call) {
    struct figures figures;
    if (call->is_light || measure_is_trusted() || !measure_card(call->uuid, &figures)) return 0;
    uint64_t bytes;
    bool is_known = measure_of(&figures, place_self().pid, &bytes);
    measure_free(&figures);
    return is_known ? bytes : 0;
}

static void begin(struct measured *call, uint64_t expected) {
    charge_join(call->uuid);
    call->span = expected ? charge_enter() : -1;
    call->charged = own_charge(call);
    call->calls = own_calls();
    call->figure = figure(call);
    if (expected == 0 || charge_reserve(call->what, call->uuid, expected, &call->claim)) return;
    call->is_refused = true;
    charge_leave(call->span);
}

static struct measured begin_on_current(const char *what, uint64_t expected, bool is_light) {
    struct measured call = {.what = what, .is_light = is_light};
    call.is_counted = charge_is_limited() && cards_current(call.uuid);
    if (call.is_counted) begin(&call, expected);
    return call;
}

struct measured measured_begin(const char *what, uint64_t expected) { return begin_on_current(what, expected, false); }

struct measured measured_begin_light(const char *what) { return begin_on_current(what, 0, true); }

struct measured measured_begin_on(const char *what, CUdevice device, uint64_t expected) {
    struct measured call = {.what = what};
    call.is_counted = charge_is_limited() && cards_of_device(device, call.uuid);
    if (call.is_counted) begin(&call, expected);
    return call;
}

uint64_t measured_growth(const struct measured *call) {
    uint64_t now = own_charge(call);
    return now > call->charged ? now - call->charged : 0;
}

/* None was under way beside this one, which has left, and none has begun. */
uint64_t measured_growth_alone(const struct measured *call) {
    bool is_alone = own_calls() == call->calls - (call->span >= 0);
    return is_alone ? measured_growth(call) : 0;
}

/* A refusal needs both: what was there before the call, or came by another's, is no reason to undo it. */
static bool is_over(const struct measured *call) {
    const struct region *region = place_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    return measured_growth(call) > 0 && account_used(region, card) > charge_limit(call->uuid);
}

static bool look_soon(const uint8_t uuid[UUID_SIZE], unsigned own) {
    settle_soon();
    return settle_if_due(uuid, own, false);
}

static bool settle(const struct measured *call) {
    unsigned own = call->span >= 0;
    if (figure(call) > call->figure) measure_trust();
    return call->is_light ? look_soon(call->uuid, own) : settle_own(call->uuid, own);
}

/* What is kept without use is no reason to refuse. */
static bool fits_trimmed(const struct measured *call) {
    int span = charge_enter();
    charge_trim_idle(call->uuid);
    charge_leave(span);
    settle_own(call->uuid, call->span >= 0);
    return !is_over(call);
}

/* Where other threads' calls keep it from being measured now, the claim stands until the next time. */
bool measured_fits(struct measured *call, CUresult result) {
    if (!call->is_counted) return true;
    bool is_settled = result == CUDA_SUCCESS && settle(call);
    bool is_left = result == CUDA_SUCCESS && measure_is_trusted();
    if (call->claim.bytes && !is_settled && !is_left) charge_release(call->claim.card, call->claim.bytes);
    bool is_fitting = !is_settled || !is_over(call) || fits_trimmed(call);
    charge_leave(call->span);
    return is_fitting;
}

CUresult measured_undone(struct measured *call) {
    uint64_t growth = measured_growth(call);
    settle_own(call->uuid, 0);
    refusals_add(call->what, call->uuid, growth);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void measured_end(void) {
    uint8_t uuid[UUID_SIZE];
    if (charge_is_limited() && cards_current(uuid)) settle_own(uuid, 0);
}

void measured_look(void) {
    uint8_t uuid[UUID_SIZE];
    if (charge_is_limited() && cards_current(uuid)) look_soon(uuid, 0);
}
