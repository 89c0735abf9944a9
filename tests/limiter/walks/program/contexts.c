/* Contexts made and destroyed, references of primary contexts, green contexts, and what a walker leaves in them. */
#include <string.h>

#include "walk.h"

void home_enter(struct walker *walker, struct home *home) {
    walker->home = home;
    DO(walker, cuCtxSetCurrent, home->context);
}

bool home_make(struct walker *walker, struct home *home) {
    unsigned which = (unsigned)(home - walker->homes);
    bool is_primary = which < 2;
    CUdevice device = is_primary ? (CUdevice)which : (CUdevice)next(walker, 2);
    CUcontext context = NULL;
    CUresult result = is_primary            ? DO(walker, cuDevicePrimaryCtxRetain, &context, device)
                      : next(walker, 2) > 0 ? DO(walker, cuCtxCreate_v2, &context, 0, device)
                                            : DO(walker, cuCtxCreate_v4, &context, NULL, 0, device);
    if (result != CUDA_SUCCESS) return false;
    if (!is_primary) DO(walker, cuCtxPopCurrent_v2, &context);
    *home = (struct home){.is_there = true, .is_primary = is_primary, .device = device, .context = context};
    return true;
}

/* Abandoned: streams, modules and their work are left to the end of the context. */
void home_end(struct walker *walker, struct home *home, bool is_abandoned) {
    home_enter(walker, home);
    order_check(walker);
    walker->order_count = 0;
    graphs_free(walker, home);
    pools_free(walker, home);
    memory_free(walker, home);
    events_free(walker, home);
    if (!is_abandoned) work_free(walker, home);
    if (home->is_primary)
        DO(walker, cuDevicePrimaryCtxRelease_v2, home->device);
    else
        DO(walker, cuCtxDestroy_v2, home->context);
    home->is_there = false;
}

static void visit(struct walker *walker) {
    struct home *home = &walker->homes[next(walker, HOMES)];
    if (home->is_there || home_make(walker, home)) home_enter(walker, home);
}

/* The first home's context lasts as long as the program. */
static void leave(struct walker *walker) {
    struct home *home = &walker->homes[1 + next(walker, HOMES - 1)];
    bool is_abandoned = next(walker, 2) == 0;
    if (!home->is_there) return;
    home_end(walker, home, is_abandoned && !home->is_primary);
    home_enter(walker, &walker->homes[0]);
}

static void spare_reference(struct walker *walker) {
    CUcontext context;
    CUdevice device = (CUdevice)next(walker, 2);
    unsigned flags;
    int is_active = 0;
    if (DO(walker, cuDevicePrimaryCtxRetain, &context, device) != CUDA_SUCCESS) return;
    DO(walker, cuDevicePrimaryCtxGetState, device, &flags, &is_active);
    if (!is_active) complain(walker, "a retained primary context is not active", device);
    DO(walker, cuDevicePrimaryCtxRelease_v2, device);
}

/* Local memory lasts as long as its context. */
/* A context that ends while its launches are queued. */
static void turnover(struct walker *walker) {
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    unsigned count = 1 + next(walker, 4);
    if (DO(walker, cuCtxCreate_v2, &context, 0, walker->home->device) != CUDA_SUCCESS) return;
    if (DO(walker, cuModuleLoadData, &module, "") == CUDA_SUCCESS) {
        DO(walker, cuModuleGetFunction, &kernel, module, "busy_20");
        for (unsigned i = 0; i < count; i++) DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    }
    DO(walker, cuCtxDestroy_v2, context);
    DO(walker, cuCtxSetCurrent, walker->home->context);
}

static void limits(struct walker *walker) {
    if (walker->home == &walker->homes[0]) return;
    DO(walker, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 1024 << next(walker, 2));
}

/* The primary context that all walkers share has no peers, because their calls would then answer by chance. */
static void peer(struct walker *walker) {
    const struct home *other = &walker->homes[next(walker, HOMES)];
    const struct home *home = walker->home;
    CUdeviceptr from = other->plain[0], to = home->plain[0];
    CUstream stream = home->tracks[next(walker, STREAMS)].stream;
    unsigned kind = next(walker, 3);
    if (!other->is_there) return;
    if (kind == 0 && !home->is_primary) DO(walker, cuCtxEnablePeerAccess, other->context, 0);
    if (kind == 1 && !home->is_primary) DO(walker, cuCtxDisablePeerAccess, other->context);
    if (kind != 2 || !from || !to) return;
    DO(walker, cuMemcpyPeer, to, home->context, from, other->context, 1);
    DO(walker, cuMemcpyPeerAsync, to, home->context, from, other->context, 1, stream);
}

static void green(struct walker *walker) {
    CUdevResource all, part;
    CUdevResourceDesc description;
    CUgreenCtx context;
    CUstream stream;
    unsigned count = 1;
    DO(walker, cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (DO(walker, cuDevSmResourceSplitByCount, &part, &count, &all, NULL, 0, 8) != CUDA_SUCCESS) return;
    DO(walker, cuDevResourceGenerateDesc, &description, &part, 1);
    if (DO(walker, cuGreenCtxCreate, &context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS) return;
    if (DO(walker, cuGreenCtxStreamCreate, &stream, context, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS) {
        struct home *home = &walker->homes[0];
        if (home->module)
            DO(walker, cuLaunchKernel, home->kernels[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        DO(walker, cuStreamSynchronize, stream);
        DO(walker, cuStreamDestroy_v2, stream);
    }
    DO(walker, cuGreenCtxDestroy, context);
}

const struct step context_steps[] = {
    {"visit", visit, 4}, {"leave", leave, 2}, {"spare", spare_reference, 2}, {"turnover", turnover, 1}, {"limits", limits, 1}, {"peer", peer, 4}, {"green", green, 1},
    {NULL, NULL, 0},
};
