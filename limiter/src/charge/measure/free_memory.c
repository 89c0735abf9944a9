#include "charge/measure/free_memory.h"

#include <string.h>

#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "common/arithmetic.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"

static uint64_t charged_bytes[REGION_CARDS]; /* by the region's row; relaxed atomic */

static void forget(void) { memset(charged_bytes, 0, sizeof charged_bytes); }
FORGET_IN_CHILD(forget);

static bool is_card(int card) { return card >= 0 && card < REGION_CARDS; }

uint64_t free_memory_read(void) {
    size_t free_bytes = 0, total = 0;
    CUresult result;
    CAPTURE_ALLOWS(result = REAL(cuMemGetInfo_v2)(&free_bytes, &total));
    return result == CUDA_SUCCESS ? free_bytes : UINT64_MAX;
}

uint64_t free_memory_charge_fall(int card, uint64_t before, uint64_t charged) {
    uint64_t now = before == UINT64_MAX || !is_card(card) ? UINT64_MAX : free_memory_read();
    uint64_t bytes = now == UINT64_MAX ? 0 : saturating_sub(saturating_sub(before, now), charged);
    if (bytes == 0) return 0;
    __atomic_fetch_add(&charged_bytes[card], bytes, __ATOMIC_RELAXED);
    charge_unconditionally(card, bytes);
    return bytes;
}

uint64_t free_memory_charged(int card) {
    return is_card(card) ? __atomic_load_n(&charged_bytes[card], __ATOMIC_RELAXED) : 0;
}

/* Takes up to `bytes` off the sum, and returns how many. */
static uint64_t take(int card, uint64_t bytes) {
    uint64_t sum = free_memory_charged(card), taken;
    do taken = min_u64(sum, bytes);
    while (taken && !__atomic_compare_exchange_n(&charged_bytes[card], &sum, sum - taken, false, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED));
    return taken;
}

void free_memory_release(int card, uint64_t bytes) { release_charge(card, take(card, bytes)); }

void free_memory_release_rise(int card, uint64_t before) {
    uint64_t now = before == UINT64_MAX || !is_card(card) ? UINT64_MAX : free_memory_read();
    if (now != UINT64_MAX) free_memory_release(card, saturating_sub(now, before));
}
