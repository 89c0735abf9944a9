#include "charge/measure/measured_call.h"

#include "charge/measure/context_limits.h"
#include "charge/measure/free_memory.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/refusals.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "driver/cards.h"
#include "region/account.h"

static uint64_t read_own_calls(void) {
    const struct region *region = container_region();
    return region ? account_calls(region, container_slot(region)) : 0;
}

/* Read only until NVML is trusted, to see whether its figure grows with the call. */
static uint64_t read_nvml_bytes(const struct measured_call *call) {
    uint64_t bytes;
    bool is_needed = !call->is_measured_if_due && !nvml_usage_is_trusted();
    return is_needed && nvml_usage_read_own(call->uuid, &bytes) ? bytes : UINT64_MAX;
}

static bool has_nvml_grown(const struct measured_call *call) {
    uint64_t now = call->nvml_bytes_before == UINT64_MAX ? UINT64_MAX : read_nvml_bytes(call);
    return now != UINT64_MAX && now > call->nvml_bytes_before;
}

/* Free memory shows what a call took if NVML does not. Until NVML is trusted, this holds for a reserved size too. It
 * can be read only through a context that is current. */
static uint64_t read_free_before(const struct measured_call *call, uint64_t expected) {
    bool is_needed = !call->is_measured_if_due && (expected == 0 || !nvml_usage_is_trusted());
    return is_needed && cards_is_current(call->uuid, NULL) ? free_memory_read() : UINT64_MAX;
}

/* Without a region nothing can be charged, and with a limit of 0 nothing would fit. */
static bool is_denied(const uint8_t uuid[UUID_SIZE]) {
    return !container_region() || container_memory_limit(uuid) == 0;
}

static void deny(struct measured_call *call, uint64_t expected) {
    call->is_refused = true;
    refusals_report(call->function_name, call->uuid, expected);
}

static void begin_measuring(struct measured_call *call, uint64_t expected) {
    if (is_denied(call->uuid)) {
        deny(call, expected);
        return;
    }
    container_join(call->uuid);
    call->call_slot = expected ? charge_begin_call() : -1;
    call->charged_before = charge_of_process(call->uuid);
    call->calls_before = read_own_calls();
    call->nvml_bytes_before = read_nvml_bytes(call);
    call->used_before = charge_of_container(call->uuid);
    call->free_before = read_free_before(call, expected);
    if (expected == 0 || charge_reserve(call->function_name, call->uuid, expected, &call->reservation)) return;
    call->is_refused = true;
    charge_end_call(call->call_slot);
}

static struct measured_call begin_on_current(const char *function_name, uint64_t expected, bool is_measured_if_due) {
    struct measured_call call = {.function_name = function_name, .is_measured_if_due = is_measured_if_due};
    call.is_limited = container_is_limited() && cards_current(call.uuid);
    if (call.is_limited) begin_measuring(&call, expected);
    return call;
}

struct measured_call measured_call_begin(const char *function_name, uint64_t expected) {
    return begin_on_current(function_name, expected, false);
}

struct measured_call measured_call_begin_if_due(const char *function_name) {
    return begin_on_current(function_name, 0, true);
}

struct measured_call measured_call_begin_on(const char *function_name, CUdevice device, uint64_t expected) {
    struct measured_call call = {.function_name = function_name};
    call.is_limited = container_is_limited() && cards_of_device(device, call.uuid);
    if (call.is_limited) begin_measuring(&call, expected);
    return call;
}

/* Bytes by which this process's charge has grown since the call began, whatever other threads did; 0 if it shrank. */
static uint64_t growth_of(const struct measured_call *call) {
    uint64_t now = charge_of_process(call->uuid);
    return now > call->charged_before ? now - call->charged_before : 0;
}

/* `calls_before` counts this call as open, if it was opened; it is closed now. Any other difference of the counters is
 * another thread's call. */
uint64_t measured_call_growth_alone(const struct measured_call *call) {
    bool is_alone = read_own_calls() == call->calls_before - (call->call_slot >= 0);
    return is_alone ? growth_of(call) : 0;
}

/* A call is undone only if it took memory itself, not because the container was over its limit before. */
static bool is_over(const struct measured_call *call) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    return growth_of(call) > 0 && account_used(region, card) > container_memory_limit(call->uuid);
}

static bool reconcile_soon_if_due(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    reconcile_soon();
    return reconcile_if_due(uuid, own_calls, false);
}

static bool reconcile_call(const struct measured_call *call) {
    unsigned own_calls = call->call_slot >= 0;
    if (has_nvml_grown(call)) nvml_usage_trust();
    return call->is_measured_if_due ? reconcile_soon_if_due(call->uuid, own_calls)
                                    : reconcile_own(call->uuid, own_calls);
}

/* Idle memory is given back before a call is refused. */
static bool fits_after_trim(const struct measured_call *call) {
    int call_slot = charge_begin_call();
    charge_trim_idle(call->uuid);
    context_limits_update_marks(call->uuid);
    charge_end_call(call_slot);
    reconcile_own(call->uuid, call->call_slot >= 0);
    return !is_over(call);
}

/* The bytes that the container was charged meanwhile, for other calls, are not charged again. */
static void estimate(struct measured_call *call) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, call->uuid) : -1;
    uint64_t charged = saturating_sub(charge_of_container(call->uuid), call->used_before);
    call->estimated = free_memory_charge_fall(card, call->free_before, charged);
}

/* If other threads' calls prevent the measurement, the reservation stays charged until the next one. Until NVML is
 * trusted it is released, and the fall of the card's free memory is charged in its place. */
bool measured_call_fits(struct measured_call *call, CUresult result) {
    if (!call->is_limited) return true;
    bool is_reconciled = result == CUDA_SUCCESS && reconcile_call(call);
    bool is_reservation_kept = result == CUDA_SUCCESS && nvml_usage_is_trusted();
    if (call->reservation.bytes && !is_reconciled && !is_reservation_kept)
        release_charge(call->reservation.card, call->reservation.bytes);
    if (result == CUDA_SUCCESS && !is_reconciled) estimate(call);
    bool is_fitting = (!is_reconciled && !call->estimated) || !is_over(call) || fits_after_trim(call);
    charge_end_call(call->call_slot);
    return is_fitting;
}

CUresult measured_call_refuse(struct measured_call *call) {
    uint64_t growth = growth_of(call);
    const struct region *region = container_region();
    if (!reconcile_own(call->uuid, 0) && call->estimated)
        free_memory_release(account_find_card(region, call->uuid), call->estimated);
    refusals_report(call->function_name, call->uuid, growth);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void measured_call_reconcile(void) {
    uint8_t uuid[UUID_SIZE];
    if (container_is_limited() && cards_current(uuid)) reconcile_own(uuid, 0);
}

static int current_card(void) {
    uint8_t uuid[UUID_SIZE];
    const struct region *region = container_is_limited() && cards_current(uuid) ? container_region() : NULL;
    return region ? account_find_card(region, uuid) : -1;
}

struct measured_end measured_call_begin_end(void) {
    bool is_estimated = free_memory_charged(current_card()) != 0;
    return (struct measured_end){is_estimated ? free_memory_read() : UINT64_MAX};
}

void measured_call_finish_end(const struct measured_end *end, bool has_ended) {
    uint8_t uuid[UUID_SIZE];
    if (!has_ended || !container_is_limited() || !cards_current(uuid)) return;
    if (!reconcile_own(uuid, 0)) free_memory_release_rise(current_card(), end->free_before);
}

void measured_call_reconcile_if_due(void) {
    uint8_t uuid[UUID_SIZE];
    if (container_is_limited() && cards_current(uuid)) reconcile_soon_if_due(uuid, 0);
}
