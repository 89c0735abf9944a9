#include "charge/reserve/attempt.h"

#include "books/pointers/pointers.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "common/log.h"
#include "common/system_calls.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"

/* Bounds of the wait for memory that the driver is still freeing after a process's death: 200 ms in all. */
enum { RETRIES = 20, RETRY_MS = 10 };

/* Bytes to which a managed allocation is rounded up: a page. NVML does not count managed memory, so the driver's own
 * granularity cannot be measured. */
#define MANAGED_GRANULARITY 4096ULL

uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

static struct attempt begin_on_current(const char *function_name) {
    struct attempt attempt = {.function_name = function_name};
    attempt.is_limited = container_is_limited() && cards_current(attempt.uuid);
    if (attempt.is_limited) attempt.call_slot = charge_begin_call();
    return attempt;
}

static bool reserve(struct attempt *attempt, uint64_t bytes) {
    attempt->is_charged = charge_reserve(attempt->function_name, attempt->uuid, bytes, &attempt->reservation);
    return attempt->is_charged;
}

static void reserve_or_refuse(struct attempt *attempt, uint64_t bytes) {
    if (attempt->is_limited && !reserve(attempt, bytes)) attempt_refuse(attempt);
}

/* A piece is charged after the call, in record_piece: only its address tells whether the driver took a new chunk. */
struct attempt attempt_begin(const char *function_name, uint64_t bytes) {
    struct attempt attempt = begin_on_current(function_name);
    attempt.is_piece = attempt.is_limited && bytes <= PIECE_MAX;
    if (!attempt.is_piece) reserve_or_refuse(&attempt, round_up(bytes, GRANULARITY));
    return attempt;
}

static void mark_managed(struct attempt *attempt) {
    attempt->is_managed = true;
    charge_mark_managed(attempt->reservation.card, attempt->reservation.bytes);
}

struct attempt attempt_begin_managed(const char *function_name, uint64_t bytes) {
    struct attempt attempt = begin_on_current(function_name);
    reserve_or_refuse(&attempt, round_up(bytes, MANAGED_GRANULARITY));
    if (attempt.is_charged) mark_managed(&attempt);
    return attempt;
}

bool attempt_make_managed(struct attempt *attempt, uint64_t bytes) {
    if (attempt->is_piece && !reserve(attempt, round_up(bytes, MANAGED_GRANULARITY))) return false;
    attempt->is_piece = false;
    mark_managed(attempt);
    return true;
}

struct attempt attempt_begin_on(const char *function_name, CUdevice device, uint64_t bytes) {
    struct attempt attempt = {.function_name = function_name};
    attempt.is_limited = container_is_limited() && cards_of_device(device, attempt.uuid);
    if (attempt.is_limited) attempt.call_slot = charge_begin_call();
    reserve_or_refuse(&attempt, round_up(bytes, GRANULARITY));
    return attempt;
}

void attempt_refuse(struct attempt *attempt) {
    attempt->is_refused = true;
    attempt->is_charged = false;
    attempt_end(attempt);
}

void attempt_end(struct attempt *attempt) {
    if (!attempt->is_limited) return;
    charge_end_call(attempt->call_slot);
    reconcile_if_due(attempt->uuid, 0, false);
}

bool reservation_retry(struct reservation *reservation, CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !reservation->has_reaped || reservation->retries++ == RETRIES)
        return false;
    system_sleep(RETRY_MS * NS_PER_MS);
    return true;
}

bool attempt_retry(struct attempt *attempt, CUresult result) {
    bool is_retried = reservation_retry(&attempt->reservation, result);
    if (!is_retried && attempt->is_limited && result == CUDA_ERROR_OUT_OF_MEMORY)
        log_debug("%s: the driver reports CUDA_ERROR_OUT_OF_MEMORY, though the limit is not reached",
                  attempt->function_name);
    return is_retried;
}

static bool record_piece(struct attempt *attempt, CUdeviceptr pointer) {
    if (pointers_join_chunk(pointer)) return true;
    if (!reserve(attempt, GRANULARITY)) return false;
    bool is_surplus = false; /* another thread has charged the chunk meanwhile */
    bool is_recorded = pointers_add_piece(pointer, attempt->reservation.card, &is_surplus);
    if (!is_recorded || is_surplus) release_charge(attempt->reservation.card, GRANULARITY);
    return is_recorded;
}

static void release_reservation(const struct attempt *attempt) {
    const struct reservation *reservation = &attempt->reservation;
    (attempt->is_managed ? release_managed : release_charge)(reservation->card, reservation->bytes);
}

static bool record_allocation(struct attempt *attempt, CUdeviceptr pointer) {
    if (attempt->is_piece) return record_piece(attempt, pointer);
    struct pointer_charge charge = {attempt->reservation.card, attempt->reservation.bytes, false, attempt->is_managed};
    if (!attempt->is_charged || pointers_add(pointer, charge)) return true;
    release_reservation(attempt);
    return false;
}

static CUresult record_or_undo(struct attempt *attempt, CUresult result, CUdeviceptr *pointer) {
    if (result != CUDA_SUCCESS) {
        if (attempt->is_charged) release_reservation(attempt);
        return result;
    }
    if (record_allocation(attempt, *pointer)) return CUDA_SUCCESS;
    (attempt->driver_free ? attempt->driver_free : REAL(cuMemFree_v2))(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult attempt_finish(struct attempt *attempt, CUresult result, CUdeviceptr *pointer) {
    if (attempt->is_refused) return result;
    result = record_or_undo(attempt, result, pointer);
    attempt_end(attempt);
    return result;
}
