/* What contexts take for themselves: by being there, and for their heap, their printf buffer and their stacks. Such a
 * limit comes into force with a module that uses it, and only once in a context's life: so each take makes one. */
#include "classes.h"

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char idle[] = HEADER ".visible .entry user()\n{\nret;\n}\n";

static const char heap_user[] = HEADER
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".visible .entry user()\n{\n.reg .b64 %rd<3>;\nmov.u64 %rd1, 64;\n{\n.param .b64 p0;\n.param .b64 q0;\n"
    "st.param.b64 [p0], %rd1;\ncall.uni (q0), malloc, (p0);\nld.param.b64 %rd2, [q0];\n}\n"
    "st.volatile.u8 [%rd2], 1;\nret;\n}\n";

static const char printf_user[] = HEADER
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n.global .align 1 .b8 text[2] = {32, 0};\n"
    ".visible .entry user()\n{\n.reg .b64 %rd<3>;\nmov.u64 %rd1, text;\ncvta.global.u64 %rd2, %rd1;\nmov.u64 %rd1, 0;\n"
    "{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q0;\nst.param.b64 [p0], %rd2;\nst.param.b64 [p1], %rd1;\n"
    "call.uni (q0), vprintf, (p0, p1);\n}\nret;\n}\n";

static CUcontext before;

/* The new context is current afterwards, as cuCtxCreate has it. */
static bool take_context(struct holding *held) {
    if (!before && !DO(cuDevicePrimaryCtxRetain, &before, 0)) return false;
    bool taken = DO(cuCtxCreate_v2, (CUcontext *)&held->object, 0, 0);
    return DO(cuCtxSetCurrent, before) && taken;
}

static void give_context(struct holding *held) {
    DO(cuCtxDestroy_v2, held->object);
    DO(cuCtxSetCurrent, before);
}

static bool use(const char *text) {
    CUmodule module;
    CUfunction function;
    return DO(cuModuleLoadData, &module, text) && DO(cuModuleGetFunction, &function, module, "user") &&
           DO(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) && DO(cuCtxSynchronize);
}

static bool take_with_limit(struct holding *held, CUlimit limit, size_t value, const char *user) {
    if (!take_context(held)) return false;
    bool taken = DO(cuCtxSetCurrent, held->object) && DO(cuCtxSetLimit, limit, value) && use(user);
    DO(cuCtxSetCurrent, before);
    if (!taken) give_context(held);
    return taken;
}

static bool take_heap(struct holding *held) {
    return take_with_limit(held, CU_LIMIT_MALLOC_HEAP_SIZE, held->bytes, heap_user);
}

static bool take_printf(struct holding *held) {
    return take_with_limit(held, CU_LIMIT_PRINTF_FIFO_SIZE, held->bytes, printf_user);
}

/* Taken for each of the threads that the card can have at once. */
static bool take_stack(struct holding *held) {
    int processors = 1;
    int threads = 1;
    DO(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    DO(cuDeviceGetAttribute, &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0);
    size_t each = held->bytes / (size_t)processors / (size_t)threads;
    return take_with_limit(held, CU_LIMIT_STACK_SIZE, each, idle);
}

const struct class context_classes[] = {
    {"context", take_context, give_context},
    {"stack limit", take_stack, give_context},
    {"heap limit", take_heap, give_context},
    {"printf limit", take_printf, give_context},
    {0},
};
