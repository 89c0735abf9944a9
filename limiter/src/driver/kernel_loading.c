#include "driver/kernel_loading.h"

#include "driver/capture.h"
#include "driver/function_table.h"
#include "driver/handle_set.h"

static struct handle_set loaded;

/* A CUkernel stands for a function in each context. Before CUDA 12.4 the driver has no cuFuncLoad. */
static void load(CUfunction function) {
    CUfunction of_kernel = NULL;
    if (REAL(cuFuncLoad)(function) == CUDA_SUCCESS) return;
    if (REAL(cuKernelGetFunction)(&of_kernel, (CUkernel)function) == CUDA_SUCCESS) REAL(cuFuncLoad)(of_kernel);
}

void kernel_loading_ensure(CUfunction function) {
    if (handle_set_has(&loaded, (uintptr_t)function)) return;
    handle_set_add(&loaded, (uintptr_t)function);
    CAPTURE_ALLOWS(load(function));
}

void kernel_loading_forget_all(void) { handle_set_empty(&loaded); }
