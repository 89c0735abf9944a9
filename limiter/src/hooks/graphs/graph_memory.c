#include "hooks/graphs/graph_memory.h"

#include <string.h>

#include "books/graph_needs.h"
#include "charge/charge.h"
#include "charge/refusals.h"
#include "charge/release.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "process/lock.h"
#include "region/account.h"

static uint64_t charged[REGION_CARDS]; /* under the mutex: bytes, of each device */

static void forget(void) { memset(charged, 0, sizeof charged); }
FORGET_IN_CHILD(forget);

static uint64_t held(int device) {
    cuuint64_t bytes = 0;
    REAL(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

void graph_memory_look(const char *what, CUdevice device, struct graph_calls *calls) {
    calls->count = device >= 0 && device < REGION_CARDS;
    struct graph_call *call = &calls->of[0];
    if (calls->count == 0) return;
    *call = (struct graph_call){.device = device, .before = held(device)};
    call->attempt = attempt_begin_on(what, device, 0);
}

/* Takes a device's charge to what its graphs hold, `claimed` of which is charged too: what is charged too much. Where
 * it is too little, another thread has claimed that, or a measurement will say. */
static uint64_t excess(CUdevice device, uint64_t claimed, uint64_t now) {
    lock_take(LOCK_GRAPH_MEMORY);
    uint64_t all = charged[device] + claimed;
    charged[device] = now;
    lock_release(LOCK_GRAPH_MEMORY);
    return all > now ? all - now : 0;
}

static void give_back(struct attempt *attempt) {
    if (attempt->is_charged) release_charge(attempt->reservation.card, attempt->reservation.bytes);
    attempt_end(attempt);
}

static uint64_t missing(uint64_t need, uint64_t there) { return need > there ? need - there : 0; }

/* What is there is shared. To have room for the rest it may be trimmed: then more is missing, and that is charged. */
static bool begin_shared(uint64_t need, struct graph_call *call) {
    const char *what = call->attempt.what;
    for (int tries = 0; tries < 2; tries++) {
        call->before = held(call->device);
        if (need <= call->before) return true;
        call->attempt = attempt_begin_on(what, call->device, missing(need, call->before));
        if (call->attempt.is_refused || held(call->device) >= call->before) break;
        if (tries == 0) give_back(&call->attempt);
    }
    return !call->attempt.is_refused;
}

/* In a span of the call. */
static bool charge_now(struct graph_call *call, uint64_t bytes) {
    struct reservation reservation;
    if (!charge_try(call->attempt.uuid, bytes, &reservation)) return false;
    call->attempt.reservation.bytes += bytes;
    return true;
}

/* What is there may be in use: then all of the need is missing, else the difference. Where all does not fit even after
 * what is idle was trimmed, it must be tried. */
static bool begin_left(uint64_t need, struct graph_call *call) {
    struct attempt *attempt = &call->attempt;
    *attempt = attempt_begin_on(attempt->what, call->device, 0);
    call->before = held(call->device);
    if (!attempt->is_charged || charge_now(call, need)) return !attempt->is_refused;
    charge_trim(attempt->uuid);
    call->before = held(call->device);
    if (charge_now(call, need)) return true;
    call->is_sure = false;
    if (charge_now(call, missing(need, call->before))) return true;
    refusals_report(attempt->what, attempt->uuid, missing(need, call->before));
    give_back(attempt);
    return false;
}

/* Whether the device's part may go on. */
static bool begin(const char *what, uint64_t need, struct graph_call *call) {
    call->is_sure = true;
    call->attempt = (struct attempt){.what = what};
    return graph_needs_any_left() ? begin_left(need, call) : begin_shared(need, call);
}

bool graph_memory_is_sure(const struct graph_calls *calls) {
    bool all = true;
    for (int i = 0; i < calls->count; i++) all &= calls->of[i].is_sure;
    return all;
}

bool graph_memory_begin(const char *what, CUgraphExec graph, struct graph_calls *calls) {
    uint64_t bytes[REGION_CARDS];
    int devices = graph_needs_of((uint64_t)graph, bytes);
    calls->count = 0;
    for (int device = 0; device < devices; device++) {
        struct graph_call *call = &calls->of[calls->count];
        call->device = device;
        if (bytes[device] == 0) continue;
        if (!begin(what, bytes[device], call)) {
            while (calls->count > 0) give_back(&calls->of[--calls->count].attempt);
            return false;
        }
        calls->count++;
    }
    return true;
}

/* Whether what was taken can be charged. Nothing has measured it meanwhile, for we are in a span. */
static bool fits(struct graph_call *call) {
    uint64_t more = missing(held(call->device), call->before + call->attempt.reservation.bytes);
    if (call->is_sure || charge_now(call, more)) return true;
    refusals_report(call->attempt.what, call->attempt.uuid, more);
    return false;
}

bool graph_memory_fits(struct graph_calls *calls) {
    bool all = true;
    for (int i = 0; i < calls->count; i++) all &= fits(&calls->of[i]);
    for (int i = 0; i < calls->count && !all; i++) REAL(cuDeviceGraphMemTrim)(calls->of[i].device);
    return all;
}

static void end(struct graph_call *call) {
    uint64_t now = held(call->device);
    bool is_quiet = !call->attempt.is_charged && now == call->before;
    if (is_quiet) return;
    if (!call->attempt.is_charged) call->attempt = attempt_begin_on(call->attempt.what, call->device, 0);
    uint64_t spare = excess(call->device, call->attempt.reservation.bytes, now);
    if (spare) release_charge(call->attempt.reservation.card, spare);
    attempt_end(&call->attempt);
}

void graph_memory_end(struct graph_calls *calls) {
    for (int i = 0; i < calls->count; i++) end(&calls->of[i]);
}

static bool is_charged(CUdevice device) {
    lock_take(LOCK_GRAPH_MEMORY);
    bool any = charged[device] != 0;
    lock_release(LOCK_GRAPH_MEMORY);
    return any;
}

/* The region's row of a device; -1 where there is none. */
static int card_of(CUdevice device) {
    uint8_t uuid[UUID_SIZE];
    const struct region *region = container_region();
    return region && cards_of_device(device, uuid) ? account_find_card(region, uuid) : -1;
}

void graph_memory_correct(int card, bool trim) {
    for (CUdevice device = 0; graph_needs_any() && device < REGION_CARDS; device++) {
        if (!is_charged(device) || (card >= 0 && card_of(device) != card)) continue;
        if (trim) REAL(cuDeviceGraphMemTrim)(device);
        uint64_t spare = excess(device, 0, held(device));
        if (spare) release_charge(card_of(device), spare);
    }
}

static void trim(const uint8_t uuid[UUID_SIZE]) {
    graph_memory_correct(account_find_card(container_region(), uuid), true);
}

const struct memory_class graph_memory_class = {.trim = trim};
