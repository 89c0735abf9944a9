/* Wrappers of calls by which a context grows: a stream takes 0.5 MiB; setting the stack size takes that size for every
 * thread that the card can hold, at once (measured on an H200, driver 580: 64 KiB per thread are 16 GiB). */
#include "charge/measure/context_limits.h"
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "compute/gate/gate_teardown.h"
#include "driver/function_table.h"

static CUresult finish_create(struct measured_call *call, CUresult result, const CUstream *stream) {
    if (measured_call_fits(call, result)) return result;
    REAL(cuStreamDestroy_v2)(*stream);
    return measured_call_refuse(call);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    struct measured_call call = measured_call_begin_if_due("cuStreamCreate");
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&call, REAL(cuStreamCreate)(stream, flags), stream);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    struct measured_call call = measured_call_begin_if_due("cuStreamCreateWithPriority");
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&call, REAL(cuStreamCreateWithPriority)(stream, flags, priority), stream);
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned flags, int priority) {
    struct measured_call call = measured_call_begin_if_due("cuGreenCtxStreamCreate");
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&call, REAL(cuGreenCtxStreamCreate)(stream, context, flags, priority), stream);
}

/* Turn events that are still to be recorded in the stream are recorded before it is destroyed
 * (compute/gate/gate_teardown.h). */
EXPORT CUresult cuStreamDestroy(CUstream stream) {
    gate_teardown_stream(stream);
    return REAL(cuStreamDestroy)(stream);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    gate_teardown_stream(stream);
    return REAL(cuStreamDestroy_v2)(stream);
}

static CUresult set_measured(CUlimit limit, size_t value) {
    size_t before = 0;
    uint64_t growth = limit == CU_LIMIT_STACK_SIZE ? local_memory_growth_to(value) : 0;
    REAL(cuCtxGetLimit)(&before, limit);
    struct measured_call call = measured_call_begin("cuCtxSetLimit", growth);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuCtxSetLimit)(limit, value);
    local_memory_forget_all(); /* with a smaller stack, small kernels may grow the context */
    if (measured_call_fits(&call, result)) return result;
    REAL(cuCtxSetLimit)(limit, before);
    return measured_call_refuse(&call);
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    return context_limits_are_charged(limit) ? context_limits_set(limit, value) : set_measured(limit, value);
}
