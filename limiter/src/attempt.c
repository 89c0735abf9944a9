#include "attempt.h"

#include <time.h>

#include "cards.h"
#include "holdings.h"
#include "hooks.h"

/* How often and how long to wait for memory that the driver is still freeing after a process's death. */
enum { RETRIES = 20, RETRY_MS = 10 };

/* Stream-ordered allocations are cut from the pool in units of this size. */
#define POOL_UNIT 512ULL

uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

/* Without limits, or without a context (the driver will say so), nothing is charged. */
static bool is_counted(struct attempt *attempt) { return charge_is_limited() && cards_current(attempt->uuid); }

static void reserve(struct attempt *attempt, uint64_t bytes) {
    attempt->is_charged = charge_reserve(attempt->what, attempt->uuid, bytes, &attempt->claim);
    attempt->is_refused = !attempt->is_charged;
}

struct attempt attempt_begin(const char *what, uint64_t bytes) {
    struct attempt attempt = {.what = what};
    if (!is_counted(&attempt)) return attempt;
    attempt.is_piece = bytes <= PIECE_MOST;
    if (!attempt.is_piece) reserve(&attempt, round_up(bytes, GRANULE));
    return attempt;
}

struct attempt attempt_begin_in_pool(const char *what, uint64_t bytes) {
    struct attempt attempt = {.what = what};
    if (is_counted(&attempt)) reserve(&attempt, round_up(bytes, POOL_UNIT));
    return attempt;
}

struct attempt attempt_begin_on(const char *what, CUdevice device, uint64_t bytes) {
    struct attempt attempt = {.what = what};
    if (charge_is_limited() && cards_of_device(device, attempt.uuid)) reserve(&attempt, round_up(bytes, GRANULE));
    return attempt;
}

bool attempt_again(struct attempt *attempt, CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !attempt->claim.reaped || attempt->tries++ == RETRIES) return false;
    nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    return true;
}

static bool keep_piece(struct attempt *attempt, CUdeviceptr pointer) {
    if (holdings_join(pointer)) return true;
    reserve(attempt, GRANULE);
    if (!attempt->is_charged) return false;
    bool spare = false;
    bool kept = holdings_add_piece(pointer, attempt->claim.card, &spare);
    if (!kept || spare) charge_release(attempt->claim.card, GRANULE);
    return kept;
}

static bool keep(struct attempt *attempt, CUdeviceptr pointer) {
    if (attempt->is_piece) return keep_piece(attempt, pointer);
    struct holding holding = {attempt->claim.card, attempt->claim.bytes, false};
    if (!attempt->is_charged || holdings_add(pointer, holding)) return true;
    charge_release(holding.card, holding.bytes);
    return false;
}

CUresult attempt_finish(struct attempt *attempt, CUresult result, CUdeviceptr *pointer) {
    if (result != CUDA_SUCCESS) {
        if (attempt->is_charged) charge_release(attempt->claim.card, attempt->claim.bytes);
        return result;
    }
    if (keep(attempt, *pointer)) return CUDA_SUCCESS;
    (attempt->free ? attempt->free : REAL(cuMemFree_v2))(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}
