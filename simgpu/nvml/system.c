/* Versions. */
#include <stddef.h>

#include "nvml/functions.h"
#include "nvml/handles.h"
#include "nvml/text.h"

#define DRIVER_VERSION      "580.95.05"
#define CUDA_DRIVER_VERSION 13000

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    nvmlReturn_t result = nvml_enter(__func__);
    return result != NVML_SUCCESS ? result : nvml_copy_text(version, length, DRIVER_VERSION);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    return nvml_copy_text(version, length, "13." DRIVER_VERSION);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    if (!version) return NVML_ERROR_INVALID_ARGUMENT;
    *version = CUDA_DRIVER_VERSION;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }
