/* cuGetProcAddress in both its forms: by base name, the newest form not newer than the version asked for. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <string.h>

typedef struct {
    const char *name;
    int version;
    void (*function)(void);
    int twin_version;
    void (*twin)(void);
} Entry;

#define FUNCTION(symbol) ((void (*)(void))(symbol))
#define ENTRY(base, version, symbol) {#base, version, FUNCTION(symbol), 0, NULL},
#define TWIN(base, version, twin_version, symbol, suffix) \
    {#base, version, FUNCTION(symbol), twin_version, FUNCTION(symbol##suffix)},

static const Entry entries[] = {
#include "cuda_entries.h"
};

static bool suits(const Entry *entry, const char *symbol, int version) {
    return strcmp(entry->name, symbol) == 0 && entry->version <= version;
}

static const Entry *find(const char *symbol, int version, CUdriverProcAddressQueryResult *status) {
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (suits(&entries[i], symbol, version)) {
            *status = CU_GET_PROC_ADDRESS_SUCCESS;
            return &entries[i];
        }
        if (suits(&entries[i], symbol, CUDA_VERSION)) {
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    return NULL;
}

static bool valid(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    const cuuint64_t both = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return symbol != NULL && pfn != NULL && version <= CUDA_VERSION && flags < both;
}

static void *address(const Entry *entry, int version, cuuint64_t flags) {
    bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (per_thread && entry->twin != NULL && version >= entry->twin_version) {
        return (void *)entry->twin;
    }
    return (void *)entry->function;
}

static CUresult resolve(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    if (!valid(symbol, pfn, version, flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Entry *found = find(symbol, version, status);
    *pfn = found == NULL ? NULL : address(found, version, flags);
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *symbolStatus) {
    CUdriverProcAddressQueryResult status;
    CUresult result = resolve(symbol, pfn, cudaVersion, flags, symbolStatus == NULL ? &status : symbolStatus);
    return result == CUDA_SUCCESS && *pfn == NULL ? CUDA_ERROR_NOT_FOUND : result;
}

SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status;
    CUresult result = resolve(symbol, pfn, cudaVersion, flags, &status);
    return result == CUDA_SUCCESS && *pfn == NULL ? CUDA_ERROR_NOT_FOUND : result;
}
