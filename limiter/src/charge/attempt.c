#include "charge/attempt.h"

#include <time.h>

#include "books/pointers.h"
#include "charge/reconcile.h"
#include "charge/release.h"
#include "common/log.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"

/* How often and how long to wait for memory that the driver is still freeing after a process's death. */
enum { RETRIES = 20, RETRY_MS = 10 };

/* Managed memory is cut finer than NVML, which does not count it, could tell. */
#define MANAGED_UNIT 4096ULL

uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

/* Without limits, or without a context (the driver will say so), nothing is charged. */
static struct attempt begin(const char *what) {
    struct attempt attempt = {.what = what};
    attempt.is_counted = container_is_limited() && cards_current(attempt.uuid);
    if (attempt.is_counted) attempt.call_slot = charge_begin_call();
    return attempt;
}

static bool reserve(struct attempt *attempt, uint64_t bytes) {
    attempt->is_charged = charge_reserve(attempt->what, attempt->uuid, bytes, &attempt->reservation);
    return attempt->is_charged;
}

/* Where the charge is refused, the attempt is over. */
static void reserve_first(struct attempt *attempt, uint64_t bytes) {
    if (!attempt->is_counted || reserve(attempt, bytes)) return;
    attempt->is_refused = true;
    attempt_end(attempt);
}

struct attempt attempt_begin(const char *what, uint64_t bytes) {
    struct attempt attempt = begin(what);
    attempt.is_piece = attempt.is_counted && bytes <= PIECE_MAX;
    if (!attempt.is_piece) reserve_first(&attempt, round_up(bytes, GRANULARITY));
    return attempt;
}

static void mark_managed(struct attempt *attempt) {
    attempt->is_managed = true;
    charge_mark_managed(attempt->reservation.card, attempt->reservation.bytes);
}

struct attempt attempt_begin_managed(const char *what, uint64_t bytes) {
    struct attempt attempt = begin(what);
    reserve_first(&attempt, round_up(bytes, MANAGED_UNIT));
    if (attempt.is_charged) mark_managed(&attempt);
    return attempt;
}

bool attempt_make_managed(struct attempt *attempt, uint64_t bytes) {
    if (attempt->is_piece && !reserve(attempt, round_up(bytes, MANAGED_UNIT))) return false;
    attempt->is_piece = false;
    mark_managed(attempt);
    return true;
}

struct attempt attempt_begin_on(const char *what, CUdevice device, uint64_t bytes) {
    struct attempt attempt = {.what = what};
    attempt.is_counted = container_is_limited() && cards_of_device(device, attempt.uuid);
    if (attempt.is_counted) attempt.call_slot = charge_begin_call();
    reserve_first(&attempt, round_up(bytes, GRANULARITY));
    return attempt;
}

void attempt_end(struct attempt *attempt) {
    if (!attempt->is_counted) return;
    charge_end_call(attempt->call_slot);
    reconcile_if_due(attempt->uuid, 0, false);
}

bool reservation_retry(struct reservation *reservation, CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !reservation->reaped || reservation->tries++ == RETRIES) return false;
    nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    return true;
}

bool attempt_retry(struct attempt *attempt, CUresult result) {
    bool again = reservation_retry(&attempt->reservation, result);
    if (!again && attempt->is_counted && result == CUDA_ERROR_OUT_OF_MEMORY)
        log_debug("%s: the driver is out of memory, though the limit is not reached", attempt->what);
    return again;
}

static bool keep_piece(struct attempt *attempt, CUdeviceptr pointer) {
    if (pointers_join_chunk(pointer)) return true;
    if (!reserve(attempt, GRANULARITY)) return false;
    bool spare = false;
    bool kept = pointers_add_piece(pointer, attempt->reservation.card, &spare);
    if (!kept || spare) release_charge(attempt->reservation.card, GRANULARITY);
    return kept;
}

static void give_back(const struct attempt *attempt) {
    const struct reservation *reservation = &attempt->reservation;
    (attempt->is_managed ? release_managed : release_charge)(reservation->card, reservation->bytes);
}

static bool keep(struct attempt *attempt, CUdeviceptr pointer) {
    if (attempt->is_piece) return keep_piece(attempt, pointer);
    struct pointer_charge holding = {attempt->reservation.card, attempt->reservation.bytes, false, attempt->is_managed};
    if (!attempt->is_charged || pointers_add(pointer, holding)) return true;
    give_back(attempt);
    return false;
}

static CUresult conclude(struct attempt *attempt, CUresult result, CUdeviceptr *pointer) {
    if (result != CUDA_SUCCESS) {
        if (attempt->is_charged) give_back(attempt);
        return result;
    }
    if (keep(attempt, *pointer)) return CUDA_SUCCESS;
    (attempt->free ? attempt->free : REAL(cuMemFree_v2))(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult attempt_finish(struct attempt *attempt, CUresult result, CUdeviceptr *pointer) {
    result = conclude(attempt, result, pointer);
    attempt_end(attempt);
    return result;
}
