#include "hooks/graphs/graph_memory.h"

#include "books/graphs/graph_charges.h"
#include "books/graphs/graph_needs.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "charge/reserve/refusals.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "region/account.h"

static uint64_t reserved_bytes(int device) {
    cuuint64_t bytes = 0;
    REAL(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

void graph_memory_begin_trim(const char *function_name, CUdevice device, struct graph_calls *calls) {
    calls->count = device >= 0 && device < REGION_CARDS;
    struct graph_call *call = &calls->devices[0];
    if (calls->count == 0) return;
    *call = (struct graph_call){.device = device, .reserved_before = reserved_bytes(device)};
    call->attempt = attempt_begin_on(function_name, device, 0);
}

static void release_attempt(struct attempt *attempt) {
    if (attempt->is_charged) release_charge(attempt->reservation.card, attempt->reservation.bytes);
    attempt_end(attempt);
}

static uint64_t shortfall(uint64_t need, uint64_t present) { return need > present ? need - present : 0; }

/* Reserved memory is idle, because every graph frees its allocations. Making room for the reservation may trim it; then
 * more is missing, so the shortfall is computed a second time. */
static bool begin_without_unfreed(uint64_t need, struct graph_call *call) {
    const char *function_name = call->attempt.function_name;
    for (int tries = 0; tries < 2; tries++) {
        call->reserved_before = reserved_bytes(call->device);
        if (need <= call->reserved_before) return true;
        call->attempt = attempt_begin_on(function_name, call->device, shortfall(need, call->reserved_before));
        if (call->attempt.is_refused || reserved_bytes(call->device) >= call->reserved_before) break;
        if (tries == 0) release_attempt(&call->attempt);
    }
    return !call->attempt.is_refused;
}

static bool charge_more(struct graph_call *call, uint64_t bytes) {
    struct reservation reservation;
    if (!charge_try(call->attempt.uuid, bytes, &reservation)) return false;
    call->attempt.reservation.bytes += bytes;
    return true;
}

/* Reserved memory may be in use by allocations that an earlier graph left, so the growth lies between the difference
 * and the whole need. If the whole need does not fit, even after trimming, the difference is reserved, and the upload
 * shows the rest. */
static bool begin_with_unfreed(uint64_t need, struct graph_call *call) {
    struct attempt *attempt = &call->attempt;
    *attempt = attempt_begin_on(attempt->function_name, call->device, 0);
    call->reserved_before = reserved_bytes(call->device);
    if (!attempt->is_charged || charge_more(call, need)) return !attempt->is_refused;
    charge_trim_and_correct(attempt->uuid);
    call->reserved_before = reserved_bytes(call->device);
    if (charge_more(call, need)) return true;
    call->is_growth_known = false;
    if (charge_more(call, shortfall(need, call->reserved_before))) return true;
    refusals_report(attempt->function_name, attempt->uuid, shortfall(need, call->reserved_before));
    release_attempt(attempt);
    return false;
}

static bool begin_on_device(const char *function_name, uint64_t need, struct graph_call *call) {
    call->is_growth_known = true;
    call->attempt = (struct attempt){.function_name = function_name};
    return graph_needs_any_unfreed() ? begin_with_unfreed(need, call) : begin_without_unfreed(need, call);
}

bool graph_memory_is_growth_known(const struct graph_calls *calls) {
    bool all = true;
    for (int i = 0; i < calls->count; i++) all &= calls->devices[i].is_growth_known;
    return all;
}

bool graph_memory_begin(const char *function_name, CUgraphExec graph, struct graph_calls *calls) {
    uint64_t bytes[REGION_CARDS];
    int devices = graph_needs_of((uint64_t)graph, bytes);
    calls->count = 0;
    for (int device = 0; device < devices; device++) {
        struct graph_call *call = &calls->devices[calls->count];
        call->device = device;
        if (bytes[device] == 0) continue;
        if (!begin_on_device(function_name, bytes[device], call)) {
            while (calls->count > 0) release_attempt(&calls->devices[--calls->count].attempt);
            return false;
        }
        calls->count++;
    }
    return true;
}

/* The growth is not charged yet, because no other thread reconciles this process while the call is open. */
static bool fits_on_device(struct graph_call *call) {
    uint64_t uncharged =
        shortfall(reserved_bytes(call->device), call->reserved_before + call->attempt.reservation.bytes);
    if (call->is_growth_known || charge_more(call, uncharged)) return true;
    refusals_report(call->attempt.function_name, call->attempt.uuid, uncharged);
    return false;
}

bool graph_memory_fits(struct graph_calls *calls) {
    bool all = true;
    for (int i = 0; i < calls->count; i++) all &= fits_on_device(&calls->devices[i]);
    for (int i = 0; i < calls->count && !all; i++) REAL(cuDeviceGraphMemTrim)(calls->devices[i].device);
    return all;
}

/* The region's row of a device; -1 if there is none. */
static int card_of(CUdevice device) {
    uint8_t uuid[UUID_SIZE];
    const struct region *region = container_region();
    return region && cards_of_device(device, uuid) ? account_find_card(region, uuid) : -1;
}

static void end_on_device(struct graph_call *call) {
    uint64_t reserved_now = reserved_bytes(call->device);
    bool is_unchanged = !call->attempt.is_charged && reserved_now == call->reserved_before;
    if (is_unchanged) return;
    if (!call->attempt.is_charged) call->attempt = attempt_begin_on(call->attempt.function_name, call->device, 0);
    uint64_t surplus =
        graph_charges_set(call->device, card_of(call->device), call->attempt.reservation.bytes, reserved_now);
    if (surplus) release_charge(call->attempt.reservation.card, surplus);
    attempt_end(&call->attempt);
}

void graph_memory_end(struct graph_calls *calls) {
    for (int i = 0; i < calls->count; i++) end_on_device(&calls->devices[i]);
}

void graph_memory_correct(int card, bool is_trimming) {
    for (CUdevice device = 0; graph_needs_any() && device < REGION_CARDS; device++) {
        if (!graph_charges_has(device) || (card >= 0 && card_of(device) != card)) continue;
        if (is_trimming) REAL(cuDeviceGraphMemTrim)(device);
        uint64_t surplus = graph_charges_set(device, card_of(device), 0, reserved_bytes(device));
        if (surplus) release_charge(card_of(device), surplus);
    }
}

static void trim(const uint8_t uuid[UUID_SIZE]) {
    graph_memory_correct(account_find_card(container_region(), uuid), true);
}

const struct memory_class graph_memory_class = {.trim = trim};
