/* Memory that code brings along: variables of a module, and a kernel's local memory. The code is PTX, made here. */
#include <stdio.h>

#include "classes.h"

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

enum { TEXT_SIZE = 1024 };

static bool load(struct holding *held, const char *text) {
    return DO(cuModuleLoadData, (CUmodule *)&held->object, text);
}

static void unload(struct holding *held) { DO(cuModuleUnload, held->object); }

/* Asking for the address loads what lazy loading has put off. */
static bool take_variable(struct holding *held) {
    char text[TEXT_SIZE];
    size_t size;
    (void)snprintf(text, sizeof text, HEADER ".visible .global .align 16 .b8 big[%zu];\n", held->bytes);
    if (!load(held, text)) return false;
    if (DO(cuModuleGetGlobal_v2, &held->pointer, &size, held->object, "big")) return true;
    unload(held);
    return false;
}

static size_t attribute(CUdevice_attribute which) {
    int value = 1;
    DO(cuDeviceGetAttribute, &value, which, 0);
    return (size_t)value;
}

/* Local memory is taken for every thread that the card can have at once. */
static size_t threads(void) {
    return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
           attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

static bool run(CUmodule module, const char *name) {
    CUfunction function;
    unsigned index = 0;
    void *arguments[] = {&index};
    return DO(cuModuleGetFunction, &function, module, name) &&
           DO(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) && DO(cuCtxSynchronize);
}

/* The index is not known to the compiler, so that the buffer stays. */
static bool take_local(struct holding *held) {
    char text[TEXT_SIZE];
    (void)snprintf(text, sizeof text,
                   HEADER
                   ".visible .entry local(.param .u32 index)\n{\n.local .align 16 .b8 buffer[%zu];\n"
                   ".reg .b32 %%r<3>;\n.reg .b64 %%rd<4>;\nld.param.u32 %%r1, [index];\n"
                   "cvt.u64.u32 %%rd1, %%r1;\nmov.u64 %%rd2, buffer;\nadd.u64 %%rd3, %%rd2, %%rd1;\n"
                   "st.volatile.local.u8 [%%rd3], %%r1;\nret;\n}\n",
                   held->bytes / threads() / 16 * 16 + 16);
    if (!load(held, text)) return false;
    if (run(held->object, "local")) return true;
    unload(held);
    return false;
}

const struct class module_classes[] = {
    {"module variable", take_variable, unload},
    {"local memory", take_local, unload},
    {0},
};
