#include "graph_memory.h"

#include <pthread.h>
#include <string.h>

#include "cards.h"
#include "hooks.h"
#include "ledger.h"
#include "settle.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger needs[REGION_CARDS]; /* under the mutex: by graph, of each device */
static uint64_t charged[REGION_CARDS];    /* under the mutex: bytes, of each device */
static bool is_used;                      /* atomically: never unset, for who has one such graph has more */
static bool is_left;                      /* atomically, likewise: there is one that does not free what it allocates */

void graph_memory_lock(void) { pthread_mutex_lock(&mutex); }

void graph_memory_unlock(void) { pthread_mutex_unlock(&mutex); }

void graph_memory_forget_all(void) {
    for (int device = 0; device < REGION_CARDS; device++) ledger_clear(&needs[device]);
    memset(charged, 0, sizeof charged);
    is_used = is_left = false;
}

bool graph_memory_is_used(void) { return __atomic_load_n(&is_used, __ATOMIC_RELAXED); }

/* Under the mutex. */
static void put(CUgraphExec graph, int device, uint64_t bytes) {
    ledger_take(&needs[device], (uint64_t)graph);
    if (bytes == 0 || !ledger_put(&needs[device], (struct ledger_entry){.key = (uint64_t)graph, .bytes = bytes}))
        return;
    __atomic_store_n(&is_used, true, __ATOMIC_RELAXED);
}

void graph_memory_put(CUgraphExec graph, const struct plan *plan) {
    graph_memory_lock();
    for (int device = 0; device < REGION_CARDS; device++) put(graph, device, plan->blocks[device].sum);
    graph_memory_unlock();
    if (plan->left) __atomic_store_n(&is_left, true, __ATOMIC_RELAXED);
}

void graph_memory_remove(CUgraphExec graph) {
    graph_memory_lock();
    for (int device = 0; device < REGION_CARDS; device++) ledger_take(&needs[device], (uint64_t)graph);
    graph_memory_unlock();
}

/* The graph's need on each device; most graphs have none. */
static bool find_needs(CUgraphExec graph, uint64_t bytes[REGION_CARDS]) {
    bool any = false;
    graph_memory_lock();
    for (int device = 0; device < REGION_CARDS; device++) {
        bytes[device] = ledger_find(&needs[device], (uint64_t)graph).bytes;
        any |= bytes[device] != 0;
    }
    graph_memory_unlock();
    return any;
}

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

static bool would_fit(int device, uint64_t bytes) {
    uint8_t uuid[UUID_SIZE];
    if (!cards_of_device(device, uuid)) return false;
    uint64_t limit = charge_limit(uuid);
    uint64_t used = charge_used(uuid);
    return used <= limit && bytes <= limit - used;
}

/* What is missing at the most: all of the need where what is there may be in use. Not sure where that does not fit. */
static uint64_t missing(uint64_t need, struct graph_call *call) {
    call->is_sure = true;
    if (!__atomic_load_n(&is_left, __ATOMIC_RELAXED)) return need > call->before ? need - call->before : 0;
    call->is_sure = would_fit(call->device, need);
    return call->is_sure ? need : 0;
}

/* Whether the device's part may go on. */
static bool begin(const char *what, uint64_t need, struct graph_call *call) {
    call->before = held(call->device);
    call->attempt = (struct attempt){.what = what};
    uint64_t bytes = missing(need, call);
    if (bytes) call->attempt = attempt_begin_on(what, call->device, bytes);
    return !call->attempt.is_refused;
}

bool graph_memory_is_sure(const struct graph_calls *calls) {
    bool all = true;
    for (int i = 0; i < calls->count; i++) all &= calls->of[i].is_sure;
    return all;
}

static void undo(struct graph_calls *calls) {
    for (int i = 0; i < calls->count; i++) {
        struct attempt *attempt = &calls->of[i].attempt;
        if (attempt->is_charged) charge_release(attempt->claim.card, attempt->claim.bytes);
        attempt_end(attempt);
    }
}

bool graph_memory_begin(const char *what, CUgraphExec graph, struct graph_calls *calls) {
    uint64_t bytes[REGION_CARDS];
    calls->count = 0;
    if (!find_needs(graph, bytes)) return true;
    for (int device = 0; device < REGION_CARDS; device++) {
        struct graph_call *call = &calls->of[calls->count];
        call->device = device;
        if (bytes[device] == 0) continue;
        if (!begin(what, bytes[device], call)) {
            undo(calls);
            return false;
        }
        calls->count++;
    }
    return true;
}

/* What was charged and is not held. At a context's end it is freed, and taken back, without a word to us. */
static uint64_t excess(const struct graph_call *call, uint64_t now) {
    graph_memory_lock();
    uint64_t known = charged[call->device] < call->before ? charged[call->device] : call->before;
    uint64_t all = known + call->attempt.claim.bytes;
    charged[call->device] = now;
    graph_memory_unlock();
    return all > now ? all - now : 0;
}

/* What is measured takes the place of what was charged; without that, what the driver says. */
static void correct(const struct graph_call *call, uint64_t now) {
    uint64_t spare = excess(call, now);
    if (!settle_own(call->attempt.uuid, 1) && spare) charge_release(call->attempt.claim.card, spare);
}

/* Whether what was taken can be charged. */
static bool fits(struct graph_call *call) {
    uint64_t now = held(call->device);
    if (call->attempt.is_charged || now <= call->before) return true;
    call->attempt = attempt_begin_on(call->attempt.what, call->device, now - call->before);
    return !call->attempt.is_refused;
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
    correct(call, now);
    attempt_end(&call->attempt);
}

void graph_memory_end(struct graph_calls *calls) {
    for (int i = 0; i < calls->count; i++) end(&calls->of[i]);
}
