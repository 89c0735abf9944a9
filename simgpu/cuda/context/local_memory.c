/* A context has LOCAL_FIRST bytes for each thread that its card can run, as part of its own charge. The first launch or
 * graph instantiation of a kernel that needs more makes it grow, which the stack size shows; here it never shrinks. */
#include "cuda/context/local_memory.h"

#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"

#define LOCAL_FIRST 1024
#define THREADS     (UINT64_C(132) * 2048) /* multiprocessors by threads, as device/device_attributes.c says */

uint64_t local_stack(CUcontext context) { return context->stack > 0 ? context->stack : LOCAL_FIRST; }

CUresult local_grow(CUcontext context, uint64_t bytes) {
    if (bytes <= local_stack(context)) return CUDA_SUCCESS;
    uint64_t more = round_up((bytes - local_stack(context)) * THREADS, PAGE);
    CUresult result = device_charge(context->device, more);
    if (result == CUDA_SUCCESS) {
        context->overhead += more;
        context->stack = bytes;
    }
    return result;
}
