/* One allocation of known size: reserve, call the driver, then record the charge or take it back.
 *
 *     CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
 *     struct attempt attempt = attempt_begin("cuMemAlloc_v2", bytes);
 *     for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
 *         result = REAL(cuMemAlloc_v2)(pointer, bytes);
 *     return attempt_finish(&attempt, result, pointer);
 *
 * An attempt opens a call (charge.h) and closes it in `attempt_finish` or `attempt_end`, or at once if it is refused.
 * The caller holds no lock. */
#ifndef VGPU_CHARGE_RESERVE_ATTEMPT_H
#define VGPU_CHARGE_RESERVE_ATTEMPT_H

#include "charge/reserve/charge.h"
#include "driver/abi.h"

struct attempt {
    const char *function_name; /* the CUDA function, for log lines */
    uint8_t uuid[UUID_SIZE];
    struct reservation reservation;
    int call_slot;   /* of charge_begin_call; valid while `is_limited` */
    bool is_limited; /* limits apply and the card is known: a call is open */
    bool is_charged; /* `reservation` is charged */
    bool is_piece;   /* up to PIECE_MAX bytes: charged after the driver's call, which decides its chunk (pointers.h) */
    bool is_managed; /* the charge is marked as managed memory */
    bool is_refused; /* over the limit: nothing is charged, the driver must not be called, and the call is closed */
    CUresult (*driver_free)(CUdeviceptr); /* undoes the driver's call; NULL: cuMemFree_v2 */
};

/* The smallest multiple of `unit` that is at least `bytes`; UINT64_MAX on overflow. */
uint64_t round_up(uint64_t bytes, uint64_t unit);

/* Reserves `bytes` on the current context's card before the driver's call. Nothing is charged without limits, or
 * without a current context, which the driver then reports. May wait for the region's lock and trim idle memory. */
struct attempt attempt_begin(const char *function_name, uint64_t bytes);

/* Like `attempt_begin`, for managed memory: always charged ahead, in multiples of 4 KiB, and marked as managed. */
struct attempt attempt_begin_managed(const char *function_name, uint64_t bytes);

/* Like `attempt_begin`, on the card of `device`, which need not be current; charged ahead whatever the size. */
struct attempt attempt_begin_on(const char *function_name, CUdevice device, uint64_t bytes);

/* Turns an attempt whose driver call found the card full into one for managed memory, which the caller allocates next.
 * False if the limit does not allow that: then nothing has changed, and the refusal is reported. */
bool attempt_make_managed(struct attempt *attempt, uint64_t bytes);

/* Whether to call the driver again: it was out of memory, and the reservation had cleared a dead process's charge,
 * whose memory the driver may still be freeing. Sleeps 10 ms before it returns true, at most 20 times per attempt. */
bool attempt_retry(struct attempt *attempt, CUresult result);

/* Whether the driver is to be called after `calls` calls, of which the last returned `result`: first unless the attempt
 * is refused, then as `attempt_retry` says. */
static inline bool attempt_needs_call(struct attempt *attempt, int calls, CUresult result) {
    return calls == 0 ? !attempt->is_refused : attempt_retry(attempt, result);
}

/* Like `attempt_retry`, for a reservation that belongs to no attempt. */
bool reservation_retry(struct reservation *reservation, CUresult result);

/* Ends an attempt after the driver's call: releases the charge if the driver failed, else records it by `*pointer`. An
 * allocation that cannot be recorded (a piece whose chunk is over the limit, or no host memory for the record) is freed
 * and `*pointer` set to 0. A refused attempt has ended: `result` is returned. Returns the result for the program. */
CUresult attempt_finish(struct attempt *attempt, CUresult result, CUdeviceptr *pointer);

/* Refuses an attempt, before the driver's call: nothing is charged, and the call is closed. */
void attempt_refuse(struct attempt *attempt);

/* Closes the attempt's call, for callers that record the charge themselves instead of using `attempt_finish`. */
void attempt_end(struct attempt *attempt);

#endif
