/* Memory of contexts: of the context itself, its heap, its printf buffer, its stacks and the local memory of its
 * kernels. The driver allocates these when a module that uses them is loaded or launched, and frees them with the
 * context: so each take creates a context. */
#include <stdio.h>

#include "classes.h"
#include "device_code.h"

enum { FIRST_STACK = 1024, TEXT_SIZE = 1024 };
enum { PENDING_LAUNCH_BYTES = 3584, MOST_SYNC_DEPTH = 24, MOST_FETCH_BYTES = 128 };
enum { PERSISTING_BYTES = 16 << 20, SHARED_BYTES = 64 << 10 };

static CUcontext before;

/* cuCtxCreate makes the new context current: makes the one before current again. */
static bool take_context(struct holding *held) {
    if (!before && !DO(cuDevicePrimaryCtxRetain, &before, 0)) return false;
    bool taken = DO(cuCtxCreate_v2, (CUcontext *)&held->object, 0, 0);
    return DO(cuCtxSetCurrent, before) && taken;
}

static void give_context(struct holding *held) {
    DO(cuCtxDestroy_v2, held->object);
    DO(cuCtxSetCurrent, before);
}

/* Launches the kernel of a module; kernels without parameters ignore the argument. */
static bool use(const char *text) {
    CUmodule module;
    CUfunction function;
    unsigned index = 0;
    void *arguments[] = {&index};
    return DO(cuModuleLoadData, &module, text) && DO(cuModuleGetFunction, &function, module, "user") &&
           DO(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) && DO(cuCtxSynchronize);
}

static bool set(CUlimit limit, size_t value) { return value == 0 || DO(cuCtxSetLimit, limit, value); }

static bool take_with(struct holding *held, CUlimit limit, size_t value, const char *user) {
    if (!take_context(held)) return false;
    bool taken = DO(cuCtxSetCurrent, held->object) && set(limit, value) && use(user);
    DO(cuCtxSetCurrent, before);
    if (!taken) give_context(held);
    return taken;
}

static bool take_heap(struct holding *held) {
    return take_with(held, CU_LIMIT_MALLOC_HEAP_SIZE, held->bytes, heap_code);
}

static bool take_printf(struct holding *held) {
    return take_with(held, CU_LIMIT_PRINTF_FIFO_SIZE, held->bytes, printf_code);
}

static bool take_pending(struct holding *held) {
    return take_with(held, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, held->bytes / PENDING_LAUNCH_BYTES, idle_code);
}

/* The limits below take no memory, or are not supported: their rows show that natively and under the limiter. */
static bool take_sync_depth(struct holding *held) {
    return take_with(held, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, MOST_SYNC_DEPTH, idle_code);
}

static bool take_fetch(struct holding *held) {
    return take_with(held, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, MOST_FETCH_BYTES, idle_code);
}

static bool take_persisting(struct holding *held) {
    return take_with(held, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, PERSISTING_BYTES, idle_code);
}

static bool take_shared(struct holding *held) { return take_with(held, CU_LIMIT_SHMEM_SIZE, SHARED_BYTES, idle_code); }

static bool take_cig(struct holding *held) { return take_with(held, CU_LIMIT_CIG_ENABLED, 1, idle_code); }

static bool take_cig_fallback(struct holding *held) {
    return take_with(held, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 1, idle_code);
}

static bool take_per_block(struct holding *held) {
    return take_with(held, CU_LIMIT_PER_BLOCK_MEMORY_SIZE, held->bytes, idle_code);
}

/* Bytes per thread, for stacks and local memory, which the driver allocates for each thread that the card can run. */
static size_t of_a_thread(size_t bytes) {
    int processors = 1;
    int threads = 1;
    DO(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    DO(cuDeviceGetAttribute, &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0);
    return FIRST_STACK + bytes / (size_t)processors / (size_t)threads;
}

static bool take_stack(struct holding *held) {
    return take_with(held, CU_LIMIT_STACK_SIZE, of_a_thread(held->bytes), idle_code);
}

/* The compiler does not know that the index is 0, and so cannot drop the buffer. */
static bool take_local(struct holding *held) {
    char text[TEXT_SIZE];
    (void)snprintf(text, sizeof text,
                   PTX_HEADER
                   ".visible .entry user(.param .u32 index)\n{\n.local .align 16 .b8 buffer[%zu];\n"
                   ".reg .b32 %%r<3>;\n.reg .b64 %%rd<4>;\n.reg .pred %%p<2>;\nld.param.u32 %%r1, [index];\n"
                   "cvt.u64.u32 %%rd1, %%r1;\nmov.u64 %%rd2, buffer;\nadd.u64 %%rd3, %%rd2, %%rd1;\n"
                   "st.local.u8 [%%rd3], %%r1;\nadd.u64 %%rd3, %%rd3, %%rd1;\nld.local.u8 %%r2, [%%rd3];\n"
                   "setp.eq.u32 %%p1, %%r2, 77;\n@%%p1 trap;\nret;\n}\n",
                   of_a_thread(held->bytes) / 16 * 16);
    return take_with(held, CU_LIMIT_STACK_SIZE, 0, text);
}

const struct class context_classes[] = {
    {"context", take_context, give_context},
    {"stack limit", take_stack, give_context},
    {"local memory", take_local, give_context},
    {"heap limit", take_heap, give_context},
    {"printf limit", take_printf, give_context},
    {"pending launches limit", take_pending, give_context},
    {"sync depth limit", take_sync_depth, give_context},
    {"L2 fetch limit", take_fetch, give_context},
    {"persisting L2 limit", take_persisting, give_context},
    {"shared memory limit", take_shared, give_context},
    {"CIG limit", take_cig, give_context},
    {"CIG fallback limit", take_cig_fallback, give_context},
    {"per-block memory limit", take_per_block, give_context},
    {0},
};
