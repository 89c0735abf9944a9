/* One allocating call: reserve, call the driver, then keep the charge or take it back. */
#ifndef VGPU_CHARGE_ATTEMPT_H
#define VGPU_CHARGE_ATTEMPT_H

#include "charge/charge.h"
#include "driver/abi.h"

/* `is_charged` before the driver's call; a piece of a chunk is charged after it, when its place is
 * known: it may cost nothing. */
struct attempt {
    const char *function_name;
    uint8_t uuid[UUID_SIZE];
    struct reservation reservation;
    int call_slot;
    bool is_limited;
    bool is_charged;
    bool is_piece;
    bool is_managed;
    bool is_refused;
    CUresult (*driver_free)(CUdeviceptr); /* undoes the driver's call; NULL: cuMemFree_v2 */
};

/* The smallest multiple of `unit` that holds `bytes`; UINT64_MAX where there is none. */
uint64_t round_up(uint64_t bytes, uint64_t unit);

/* Before the driver's call: for memory of its own, managed, or on a device that need not be the current one.
 * Without limits, or without a context (the driver will say so), nothing is charged. Where `is_refused`, the driver
 * must not be called. */
struct attempt attempt_begin(const char *function_name, uint64_t bytes);
struct attempt attempt_begin_managed(const char *function_name, uint64_t bytes);
struct attempt attempt_begin_on(const char *function_name, CUdevice device, uint64_t bytes);

/* Makes it one for managed memory, which the driver is called for next. False where the limit does not allow it. */
bool attempt_make_managed(struct attempt *attempt, uint64_t bytes);

/* Whether to call the driver again: a dead process's memory, not yet freed, stood in the way. */
bool attempt_retry(struct attempt *attempt, CUresult result);
bool reservation_retry(struct reservation *reservation, CUresult result);

/* After the driver's call: takes the charge back where the driver refused. What cannot be kept, over the limit or out
 * of our own memory, is undone. Returns the answer for the program. */
CUresult attempt_finish(struct attempt *attempt, CUresult result, CUdeviceptr *pointer);

/* The last of `attempt_finish`, for who keeps the charge in a way of his own. */
void attempt_end(struct attempt *attempt);

#endif
