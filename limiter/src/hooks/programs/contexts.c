/* Wrappers that create and end contexts; those of primary contexts are in primary_contexts.c. */
#include "charge/measure/context_limits.h"
#include "charge/measure/measured_call.h"
#include "charge/nvml/nvml_usage.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/programs/context_creation.h"
#include "hooks/programs/context_end.h"
#include "hooks/programs/context_estimates.h"
#include "hooks/programs/space_client.h"

/* The descriptor for slot locks has a high number, for which the kernel enlarges the process's table. In a process with
 * threads, and the driver starts some, that takes it 8 to 18 ms (an RCU grace period); so the descriptor is opened
 * before. */
EXPORT CUresult cuInit(unsigned flags) {
    if (!container_is_limited()) return REAL(cuInit)(flags);
    (void)container_self();
    if (!space_client_prepare()) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuInit)(flags);
    space_client_conclude(result);
    return result;
}

static CUresult finish_create(struct context_creation *creation, CUresult result, const CUcontext *context) {
    if (context_creation_fits(creation, result)) {
        if (result == CUDA_SUCCESS) context_estimates_put(*context, &creation->call);
        return result;
    }
    REAL(cuCtxDestroy_v2)(*context);
    return measured_call_refuse(&creation->call);
}

EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    struct context_creation creation;
    if (!context_creation_begin(&creation, "cuCtxCreate", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate)(context, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    struct context_creation creation;
    if (!context_creation_begin(&creation, "cuCtxCreate_v2", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v2)(context, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags,
                               CUdevice device) {
    struct context_creation creation;
    if (!context_creation_begin(&creation, "cuCtxCreate_v3", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v3)(context, affinity, count, flags, device), context);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device) {
    struct context_creation creation;
    if (!context_creation_begin(&creation, "cuCtxCreate_v4", device)) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_create(&creation, REAL(cuCtxCreate_v4)(context, parameters, flags, device), context);
}

/* Neither reserved nor recorded: a green context's size depends on its resources, so the last one's says nothing. */
EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
    nvml_usage_start();
    struct measured_call call = measured_call_begin_on("cuGreenCtxCreate", device, 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuGreenCtxCreate)(context, description, device, flags);
    if (measured_call_fits(&call, result)) return result;
    REAL(cuGreenCtxDestroy)(*context);
    return measured_call_refuse(&call);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    CUresult result = REAL(cuCtxFromGreenCtx)(context, green);
    if (result == CUDA_SUCCESS) measured_call_reconcile_if_due();
    return result;
}

static CUresult finish_end(const struct context_end *end, CUresult result) {
    context_end_finish(end, result == CUDA_SUCCESS);
    return result;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDestroy)(context);
    struct context_end end = context_end_begin(context_end_device(context), context);
    CUresult result = REAL(cuCtxDestroy)(context);
    if (result == CUDA_SUCCESS) {
        context_limits_end(context);
        context_estimates_end(context);
    }
    return finish_end(&end, result);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDestroy_v2)(context);
    struct context_end end = context_end_begin(context_end_device(context), context);
    CUresult result = REAL(cuCtxDestroy_v2)(context);
    if (result == CUDA_SUCCESS) {
        context_limits_end(context);
        context_estimates_end(context);
    }
    return finish_end(&end, result);
}

/* The context may live on: other references to it may be left. Then charges of its limits stay. */
EXPORT CUresult cuCtxDetach(CUcontext context) {
    if (!container_is_limited()) return REAL(cuCtxDetach)(context);
    struct context_end end = context_end_begin(context_end_device(context), context);
    return finish_end(&end, REAL(cuCtxDetach)(context));
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context) {
    if (!container_is_limited()) return REAL(cuGreenCtxDestroy)(context);
    CUcontext inside = NULL;
    REAL(cuCtxFromGreenCtx)(&inside, context);
    struct context_end end = context_end_begin(context_end_device(inside), inside);
    CUresult result = REAL(cuGreenCtxDestroy)(context);
    if (result == CUDA_SUCCESS) context_limits_end_green(inside);
    return finish_end(&end, result);
}
