/* Wrappers of calls by which a context grows: a stream takes 0.5 MiB; setting the stack size takes that size for every
 * thread that the card can hold, at once (measured on an H200, driver 580: 64 KiB per thread are 16 GiB). */
#include "charge/measure/context_limits.h"
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "compute/gate_teardown.h"
#include "driver/function_table.h"

#define CREATE(name, stream, ...)                                      \
    do {                                                               \
        struct measured_call call = measured_call_begin_if_due(#name); \
        if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;          \
        CUresult result = REAL(name)(stream, __VA_ARGS__);             \
        if (measured_call_fits(&call, result)) return result;          \
        REAL(cuStreamDestroy_v2)(*(stream));                           \
        return measured_call_refuse(&call);                            \
    } while (0)

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) { CREATE(cuStreamCreate, stream, flags); }

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    CREATE(cuStreamCreateWithPriority, stream, flags, priority);
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned flags, int priority) {
    CREATE(cuGreenCtxStreamCreate, stream, context, flags, priority);
}

/* Turn events that are still to be recorded in the stream are recorded before it is destroyed
 * (compute/gate_teardown.h). */
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
