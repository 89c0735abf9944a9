/* A driver call that takes memory of a size only the driver knows (contexts, modules, libraries, streams): it is made,
 * measured by NVML, and undone if it took the container over its limit. See docs/adr/0013.
 *
 *     struct measured_call call = measured_call_begin("cuModuleLoad", 0);
 *     if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
 *     CUresult result = REAL(cuModuleLoad)(module, name);
 *     if (measured_call_fits(&call, result)) return result;
 *     REAL(cuModuleUnload)(*module);
 *     return measured_call_refuse(&call);
 *
 * The caller holds no lock. A measurement takes 20 to 32 us, and is tried for up to 40 ms while other threads' calls
 * disturb it. */
#ifndef VGPU_CHARGE_MEASURE_MEASURED_CALL_H
#define VGPU_CHARGE_MEASURE_MEASURED_CALL_H

#include "charge/reserve/charge.h"
#include "driver/abi.h"

struct measured_call {
    const char *function_name; /* the CUDA function, for log lines */
    uint8_t uuid[UUID_SIZE];
    struct reservation reservation; /* 0 bytes: nothing was reserved */
    int call_slot;                  /* of charge_begin_call; -1: no call is open, for nothing was reserved */
    uint64_t charged_before;        /* bytes charged to this process on the card, before the driver's call */
    uint64_t calls_before;          /* this process's call counters (account_calls), before the driver's call */
    uint64_t nvml_bytes_before;     /* NVML's figure of this process before the driver's call; UINT64_MAX: not read */
    uint64_t free_before;           /* the card's free bytes before the driver's call; UINT64_MAX: not read */
    uint64_t used_before;           /* bytes charged to the container on the card, before the driver's call */
    uint64_t estimated;             /* bytes charged by free memory, because NVML did not answer */
    bool is_limited;                /* limits apply and the card is known */
    bool is_measured_if_due;        /* measured at the rate of `reconcile_if_due`, not each time */
    bool is_refused;                /* over the limit, or nothing may be allocated: the driver must not be called */
};

/* Begins a call on the current context's card. `expected` bytes are reserved before it, so that processes that make
 * such calls at the same time stay under the limit; 0 if the size cannot be guessed. Without limits, or without a
 * current context, nothing is charged. */
struct measured_call measured_call_begin(const char *function_name, uint64_t expected);

/* Like `measured_call_begin`, on the card of `device`, which need not be current. */
struct measured_call measured_call_begin_on(const char *function_name, CUdevice device, uint64_t expected);

/* Like `measured_call_begin`, for a call so short that measuring each would be felt: measured only if a measurement is
 * due (reconcile_if_due). */
struct measured_call measured_call_begin_if_due(const char *function_name);

/* After the driver's call: sets the charge to what the process now holds, by NVML, or while that fails, by the card's
 * free memory. False if that call took the container over its limit, even after idle memory was trimmed: the caller
 * undoes it, then calls `measured_call_refuse`. */
bool measured_call_fits(struct measured_call *call, CUresult result);

/* After the call was undone: measures again and reports the refusal. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult measured_call_refuse(struct measured_call *call);

/* Bytes by which the call itself grew the charge; 0 if another call of this process was open beside it. To be called
 * after `measured_call_fits`. */
uint64_t measured_call_growth_alone(const struct measured_call *call);

/* Measures this process on the current context's card, after a call that gave back memory only NVML can count. */
void measured_call_reconcile(void);

/* Around a driver call that gives back such memory (`has_ended`: it succeeded): measures this process afterwards, and
 * while NVML fails, takes back what was charged by free memory. */
struct measured_end {
    uint64_t free_before; /* the card's free bytes; UINT64_MAX: nothing was charged by them */
};
struct measured_end measured_call_begin_end(void);
void measured_call_finish_end(const struct measured_end *end, bool has_ended);

/* Measures this process on the current context's card if a measurement is due, after a call that took or gave back
 * memory only NVML can count, and that is never undone. */
void measured_call_reconcile_if_due(void);

#endif
