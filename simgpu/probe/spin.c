/* The simulated driver reads from a kernel's name how long the kernel takes. */
#include "probe/spin.h"

#include <stdio.h>

#include "probe/driver.h"

#define IN_FLIGHT 16 /* kernels launched between two synchronizations */

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
        if (result != CUDA_SUCCESS) return result;
    }
    return cuda.cuCtxSynchronize_();
}

int spin(unsigned us) {
    CUfunction kernel;
    CUresult result = load(us, &kernel);
    while (result == CUDA_SUCCESS) result = feed(kernel);
    return failed("spin", (int)result);
}
