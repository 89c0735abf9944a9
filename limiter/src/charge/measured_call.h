/* A call whose taking only the driver knows: it is made, measured, and undone where it took the container over its
 * limit.
 *
 *     struct measured_call call = measured_call_begin("cuModuleLoad", 0);
 *     if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
 *     CUresult result = REAL(cuModuleLoad)(module, name);
 *     if (measured_call_fits(&call, result)) return result;
 *     REAL(cuModuleUnload)(*module);
 *     return measured_call_refuse(&call);
 */
#ifndef VGPU_CHARGE_MEASURED_CALL_H
#define VGPU_CHARGE_MEASURED_CALL_H

#include "charge/charge.h"
#include "driver/abi.h"

struct measured_call {
    const char *function_name;
    uint8_t uuid[UUID_SIZE];
    struct reservation reservation;
    int call_slot;
    uint64_t charged_before;    /* to this process, before */
    uint64_t calls_before;      /* of this process, before (account_calls) */
    uint64_t nvml_bytes_before; /* NVML's of this process before; only where it is not trusted yet */
    bool is_limited;
    bool is_measured_if_due;
    bool is_refused; /* the driver must not be called */
};

/* Before the call: on the current context's card, or on that of a device. `expected` bytes are charged ahead, so that
 * processes that do the same together stay under the limit; 0 where nobody can know. Without limits, or without a
 * context, nothing is counted. */
struct measured_call measured_call_begin(const char *function_name, uint64_t expected);
struct measured_call measured_call_begin_on(const char *function_name, CUdevice device, uint64_t expected);

/* The same for a call so quick that measuring each would be felt: it is measured where that is due. */
struct measured_call measured_call_begin_if_due(const char *function_name);

/* After it: charges what the process now holds. False where the call has to be undone. */
bool measured_call_fits(struct measured_call *call, CUresult result);

/* After it was undone. Returns the answer for the program: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult measured_call_refuse(struct measured_call *call);

/* How much more the process holds than before, as far as that was measured. */
uint64_t measured_call_growth(const struct measured_call *call);

/* The same; 0 where another call of this process has changed what it holds meanwhile. */
uint64_t measured_call_growth_alone(const struct measured_call *call);

/* After a call that gave back what only NVML can count: measures. */
void measured_call_reconcile(void);

/* After a call that gave back, or took, what only NVML can count, and that is not to be undone: measures where that is
 * due. */
void measured_call_reconcile_if_due(void);

#endif
