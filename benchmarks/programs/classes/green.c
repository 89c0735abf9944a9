/* Memory allocated in a green context. */
#include "classes.h"

enum { PROCESSORS = 16 };

static bool make(CUgreenCtx *green) {
    CUdevResource all;
    CUdevResource part;
    CUdevResource rest;
    CUdevResourceDesc described;
    unsigned groups = 1;
    return DO(cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM) &&
           DO(cuDevSmResourceSplitByCount, &part, &groups, &all, &rest, 0, PROCESSORS) &&
           DO(cuDevResourceGenerateDesc, &described, &part, 1) &&
           DO(cuGreenCtxCreate, green, described, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

static bool allocate_in(CUgreenCtx green, struct holding *held) {
    CUcontext inside;
    CUcontext before;
    if (!DO(cuCtxFromGreenCtx, &inside, green) || !DO(cuDevicePrimaryCtxRetain, &before, 0)) return false;
    bool taken = DO(cuCtxSetCurrent, inside) && DO(cuMemAlloc_v2, &held->pointer, held->bytes);
    DO(cuCtxSetCurrent, before);
    return taken;
}

static bool take_in_green(struct holding *held) {
    CUgreenCtx green;
    if (!make(&green)) return false;
    held->object = green;
    if (allocate_in(green, held)) return true;
    DO(cuGreenCtxDestroy, green);
    return false;
}

static void give_green(struct holding *held) {
    DO(cuMemFree_v2, held->pointer);
    DO(cuGreenCtxDestroy, held->object);
}

const struct class green_classes[] = {{"in a green context", take_in_green, give_green}, {0}};
