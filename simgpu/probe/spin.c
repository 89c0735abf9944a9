/* The simulated driver reads from a kernel's name how long the kernel takes, and whether it has a fault. */
#include "probe/spin.h"

#include <stdio.h>

#include "probe/driver.h"

#define IN_FLIGHT 16 /* kernels launched between two synchronizations */

static CUresult load(const char *name, CUfunction *kernel) {
    CUmodule module;
    CUresult result = cuda.cuModuleLoadData_(&module, "");
    return result == CUDA_SUCCESS ? cuda.cuModuleGetFunction_(kernel, module, name) : result;
}

static CUresult launch(CUfunction kernel) {
    return cuda.cuLaunchKernel_(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult feed(CUfunction kernel) {
    for (int i = 0; i < IN_FLIGHT; i++) {
        CUresult result = launch(kernel);
        if (result != CUDA_SUCCESS) return result;
    }
    return cuda.cuCtxSynchronize_();
}

int spin(unsigned us) {
    CUfunction kernel;
    char name[32];
    (void)snprintf(name, sizeof name, "spin_%u", us);
    CUresult result = load(name, &kernel);
    while (result == CUDA_SUCCESS) result = feed(kernel);
    return failed("spin", (int)result);
}

int fault(void) {
    CUfunction kernel;
    CUresult result = load("fault", &kernel);
    if (result == CUDA_SUCCESS) result = launch(kernel);
    if (result == CUDA_SUCCESS) result = cuda.cuCtxSynchronize_();
    return failed("fault", (int)result);
}
