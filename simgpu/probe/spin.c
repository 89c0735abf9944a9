/* Keeps a card at work, by kernels of which the simulated driver reads from their name how long they take. */
#define _GNU_SOURCE
#include "probe.h"

#include <stdio.h>

#define IN_FLIGHT 16 /* launched between two waits for all of it */

static CUresult load(unsigned us, CUfunction *kernel) {
    CUmodule module;
    char name[32];
    (void)snprintf(name, sizeof name, "spin_%u", us);
    CUresult result = cuda.cuModuleLoadData_(&module, "");
    return result == CUDA_SUCCESS ? cuda.cuModuleGetFunction_(kernel, module, name) : result;
}

static CUresult feed(CUfunction kernel) {
    for (int i = 0; i < IN_FLIGHT; i++) {
        CUresult result = cuda.cuLaunchKernel_(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return cuda.cuCtxSynchronize_();
}

int spin(unsigned us) {
    CUfunction kernel;
    CUresult result = load(us, &kernel);
    while (result == CUDA_SUCCESS) {
        result = feed(kernel);
    }
    return failed("spin", (int)result);
}
