#include "graph_memory.h"

#include <pthread.h>
#include <string.h>

#include "cards.h"
#include "graph_needs.h"
#include "hooks.h"
#include "settle.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t charged[REGION_CARDS]; /* under the mutex: bytes, of each device */

void graph_memory_lock(void) { pthread_mutex_lock(&mutex); }

void graph_memory_unlock(void) { pthread_mutex_unlock(&mutex); }

void graph_memory_forget_all(void) { memset(charged, 0, sizeof charged); }

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
    if (!graph_needs_any_left()) return need > call->before ? need - call->before : 0;
    call->is_sure = would_fit(call->device, need);
    return call->is_sure ? need : 0;
}

/* Gives back what no graph uses: what was charged for it. */
static uint64_t trim(CUdevice device) {
    REAL(cuDeviceGraphMemTrim)(device);
    uint64_t now = held(device);
    graph_memory_lock();
    uint64_t spare = charged[device] > now ? charged[device] - now : 0;
    charged[device] = now;
    graph_memory_unlock();
    return spare;
}

static void trim_first(struct graph_call *call) {
    struct attempt attempt = attempt_begin_on(call->attempt.what, call->device, 0);
    uint64_t spare = trim(call->device);
    if (spare) charge_release(attempt.claim.card, spare);
    attempt_end(&attempt);
    call->before = held(call->device);
}

static void give_back(struct attempt *attempt) {
    if (attempt->is_charged) charge_release(attempt->claim.card, attempt->claim.bytes);
    attempt_end(attempt);
}

/* Whether the device's part may go on. To have room for it, what was there may have been trimmed: then it is charged
 * anew, as nothing is left to be trimmed. */
static bool begin(const char *what, uint64_t need, struct graph_call *call) {
    for (int tries = 0; tries < 2; tries++) {
        call->before = held(call->device);
        call->attempt = (struct attempt){.what = what};
        uint64_t bytes = missing(need, call);
        if (!call->is_sure) trim_first(call);
        if (bytes == 0) return true;
        call->attempt = attempt_begin_on(what, call->device, bytes);
        if (call->attempt.is_refused || held(call->device) >= call->before) break;
        if (tries == 0) give_back(&call->attempt);
    }
    return !call->attempt.is_refused;
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

static bool is_of(CUdevice device, const uint8_t uuid[UUID_SIZE]) {
    uint8_t own[UUID_SIZE];
    graph_memory_lock();
    bool any = charged[device] != 0;
    graph_memory_unlock();
    return any && cards_of_device(device, own) && memcmp(own, uuid, UUID_SIZE) == 0;
}

void graph_memory_trim_on(const uint8_t uuid[UUID_SIZE], int card) {
    for (CUdevice device = 0; graph_needs_any() && device < REGION_CARDS; device++) {
        uint64_t spare = is_of(device, uuid) ? trim(device) : 0;
        if (spare) charge_release(card, spare);
    }
}
