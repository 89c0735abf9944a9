#include "charge/measure/context_limits.h"

#include <stddef.h>

#include "books/pointers/pointers.h"
#include "charge/release/release.h"
#include "charge/reserve/attempt.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "driver/primary_context.h"
#include "process/fork.h"
#include "process/lock.h"
#include "region/account.h"

/* Initial values, whose memory is measured, not charged ahead. */
#define INITIAL_HEAP    (8ULL << 20)
#define INITIAL_PENDING 2048ULL

/* The driver bounds the number of pending launches so that 3584 bytes for each are at most 2 GiB. */
#define PENDING_LAUNCH_BYTES 3584ULL

/* Contexts with such a limit; a program with more of them is refused the limit. */
enum { CHARGES = 64 };

struct limit_charge {
    CUcontext context; /* NULL: the entry is free */
    CUlimit limit;
    CUdevice device;
    bool is_primary;
    bool is_gone;   /* a green context that was destroyed: its heap may be its primary context's, with which it ends */
    bool is_marked; /* the charge is marked as managed memory: the driver has not taken it, as far as is known */
    int card;       /* the region's row */
    uint64_t bytes;
};
static struct limit_charge charges[CHARGES]; /* guarded by LOCK_CONTEXT_LIMITS */

static void forget(void) {
    for (int i = 0; i < CHARGES; i++) charges[i] = (struct limit_charge){0};
}
FORGET_IN_CHILD(forget);

bool context_limits_are_charged(CUlimit limit) {
    bool is_charged = limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
    return is_charged && container_is_limited();
}

/* Bytes to be charged for a value of a limit. */
static uint64_t bytes_of(CUlimit limit, uint64_t value) {
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        return value <= INITIAL_HEAP ? 0 : saturating_add(round_up(value, GRANULARITY), GRANULARITY);
    if (value <= INITIAL_PENDING) return 0;
    return value > UINT64_MAX / PENDING_LAUNCH_BYTES ? UINT64_MAX : round_up(value * PENDING_LAUNCH_BYTES, GRANULARITY);
}

/* The entry of a context's limit, or a free one; NULL where all are taken. The caller holds LOCK_CONTEXT_LIMITS. */
static struct limit_charge *find(CUcontext context, CUlimit limit) {
    struct limit_charge *free_entry = NULL;
    for (int i = 0; i < CHARGES; i++) {
        if (charges[i].context == context && charges[i].limit == limit && !charges[i].is_gone) return &charges[i];
        if (!charges[i].context && !free_entry) free_entry = &charges[i];
    }
    return free_entry;
}

static uint64_t charged_bytes(CUcontext context, CUlimit limit) {
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    const struct limit_charge *entry = find(context, limit);
    return entry && entry->context ? entry->bytes : 0;
}

/* Stores the charge of a limit's present value. Returns the bytes that are charged beyond it: of those before, and
 * `added`. Where the table is full, nothing is stored, and `added` stays charged until the process ends. */
static uint64_t record(struct limit_charge wanted, uint64_t added) {
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    struct limit_charge *entry = find(wanted.context, wanted.limit);
    uint64_t held = entry && entry->context ? saturating_add(entry->bytes, added) : added;
    wanted.bytes = min_u64(wanted.bytes, held);
    if (entry) *entry = wanted.bytes ? wanted : (struct limit_charge){0};
    return entry ? held - wanted.bytes : 0;
}

static bool is_primary(CUcontext context, CUdevice device) {
    CUcontext primary = NULL;
    if (!primary_context_is_active(device)) return false;
    if (REAL(cuDevicePrimaryCtxRetain)(&primary, device) != CUDA_SUCCESS) return false;
    (void)primary_context_release(device);
    return primary == context;
}

/* The driver may set another value than was asked for, so the charge follows the value that is read back. */
static CUresult set_charged(size_t value, struct limit_charge *wanted, uint64_t added) {
    size_t present = value;
    CUresult result = REAL(cuCtxSetLimit)(wanted->limit, value);
    if (result != CUDA_SUCCESS) {
        release_managed(wanted->card, added);
        return result;
    }
    REAL(cuCtxGetLimit)(&present, wanted->limit);
    wanted->bytes = bytes_of(wanted->limit, present);
    release_managed(wanted->card, record(*wanted, added));
    return result;
}

CUresult context_limits_set(CUlimit limit, size_t value) {
    struct limit_charge wanted = {.limit = limit, .is_marked = true};
    if (REAL(cuCtxGetCurrent)(&wanted.context) != CUDA_SUCCESS || !wanted.context ||
        REAL(cuCtxGetDevice)(&wanted.device) != CUDA_SUCCESS)
        return REAL(cuCtxSetLimit)(limit, value);
    uint64_t before = charged_bytes(wanted.context, limit), asked = bytes_of(limit, value);
    if (asked == 0 && before == 0) return REAL(cuCtxSetLimit)(limit, value);
    uint64_t added = asked > before ? asked - before : 0;
    struct attempt attempt = attempt_begin_on("cuCtxSetLimit", wanted.device, added);
    if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    charge_mark_managed(attempt.reservation.card, added);
    wanted.card = attempt.reservation.card;
    wanted.is_primary = is_primary(wanted.context, wanted.device);
    CUresult result = set_charged(value, &wanted, added);
    attempt_end(&attempt);
    return result;
}

/* Whether the heap of the current context exists: its limit cannot be changed then (CUDA_ERROR_INVALID_VALUE). */
static bool is_heap_taken(void) {
    size_t present = 0;
    if (REAL(cuCtxGetLimit)(&present, CU_LIMIT_MALLOC_HEAP_SIZE) != CUDA_SUCCESS || present < GRANULARITY) return false;
    CUresult result = REAL(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, present - GRANULARITY);
    if (result == CUDA_SUCCESS) REAL(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, present);
    return result == CUDA_ERROR_INVALID_VALUE;
}

static bool is_heap_taken_in(CUcontext context) {
    if (REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS) return false;
    bool is_taken = false;
    if (capture_was_seen())
        CAPTURE_ALLOWS(is_taken = is_heap_taken());
    else
        is_taken = is_heap_taken();
    REAL(cuCtxPopCurrent_v2)(&context);
    return is_taken;
}

static struct limit_charge copy_of(int index) {
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    return charges[index];
}

/* Returns the bytes whose mark ends; 0 if another thread has changed the entry. */
static uint64_t end_mark(int index, const struct limit_charge *seen) {
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    struct limit_charge *entry = &charges[index];
    bool is_same = entry->context == seen->context && entry->limit == seen->limit && entry->is_marked;
    uint64_t bytes = is_same ? entry->bytes : 0;
    if (is_same) entry->is_marked = false;
    return bytes;
}

void context_limits_update_marks(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    int card = region ? account_find_card(region, uuid) : -1;
    for (int i = 0; card >= 0 && i < CHARGES; i++) {
        struct limit_charge seen = copy_of(i);
        bool is_waiting = seen.context && seen.is_marked && !seen.is_gone && seen.limit == CU_LIMIT_MALLOC_HEAP_SIZE;
        if (!is_waiting || seen.card != card || !is_heap_taken_in(seen.context)) continue;
        uint64_t bytes = end_mark(i, &seen);
        if (bytes) charge_unmark_managed(card, bytes);
    }
}

static bool take_ended(CUcontext context, CUdevice device, struct limit_charge *ended) {
    *ended = (struct limit_charge){0};
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    for (int i = 0; i < CHARGES && !ended->context; i++) {
        const struct limit_charge *entry = &charges[i];
        bool has_ended_with_primary = (entry->is_primary || entry->is_gone) && entry->device == device;
        bool has_ended = context ? entry->context == context && !entry->is_gone : has_ended_with_primary;
        if (!has_ended || !entry->context) continue;
        *ended = *entry;
        charges[i] = (struct limit_charge){0};
    }
    return ended->context != NULL;
}

static void end_all(CUcontext context, CUdevice device) {
    struct limit_charge ended;
    while (take_ended(context, device, &ended))
        (ended.is_marked ? release_managed : release_charge)(ended.card, ended.bytes);
}

void context_limits_end(CUcontext context) {
    if (context) end_all(context, 0);
}

void context_limits_end_primary(CUdevice device) { end_all(NULL, device); }

void context_limits_end_green(CUcontext context) {
    HOLD_LOCK(LOCK_CONTEXT_LIMITS);
    for (int i = 0; i < CHARGES; i++)
        if (context && charges[i].context == context) charges[i].is_gone = true;
}

static void correct(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    (void)own_calls;
    context_limits_update_marks(uuid);
}

static void refresh(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping) {
    (void)card;
    if (is_after_reaping) context_limits_update_marks(uuid);
}

const struct memory_class context_limits_class = {.correct = correct, .refresh = refresh};
