/* Stands in for driver/resolve.c, which makes the limiter a preloaded library. */
#include <dlfcn.h>

#include "driver/abi.h"
#include "driver/resolve.h"

void *resolve_own(const char *name) { return dlsym(RTLD_DEFAULT, name); }

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    (void)symbol, (void)pfn, (void)version, (void)flags;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    (void)status;
    return cuGetProcAddress(symbol, pfn, version, flags);
}
