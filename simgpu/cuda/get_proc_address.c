/* cuGetProcAddress in both its forms: by base name, the newest form not newer than the version asked for.
 * Results, statuses and untouched pointers are as a 580 driver gave them. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

typedef struct {
    const char *name;
    int version;
    void (*function)(void);
    int twin_version;
    void (*twin)(void);
} Entry;

#define FUNCTION(symbol)             ((void (*)(void))(symbol))
#define ENTRY(base, version, symbol) {#base, version, FUNCTION(symbol), 0, NULL},
#define TWIN(base, version, twin_version, symbol, suffix) \
    {#base, version, FUNCTION(symbol), twin_version, FUNCTION(symbol##suffix)},

static const Entry entries[] = {
#include "entry_points.h"
};

static bool valid(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    const cuuint64_t both = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return symbol != NULL && pfn != NULL && version <= SIM_CUDA_VERSION && flags <= both;
}

/* What the entry offers a caller of that version, NULL for too old a one. Where a per-thread twin exists and is asked
 * for, a version before the twin's gets nothing, not the legacy form. */
static void *offer(const Entry *entry, int version, bool per_thread) {
    bool twin = per_thread && entry->twin != NULL;
    if (version < (twin ? entry->twin_version : entry->version)) {
        return NULL;
    }
    return twin ? (void *)entry->twin : (void *)entry->function;
}

static void *find(const char *symbol, int version, bool per_thread, CUdriverProcAddressQueryResult *status) {
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].name, symbol) != 0) {
            continue;
        }
        void *found = offer(&entries[i], version, per_thread);
        *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *symbolStatus) {
    CUdriverProcAddressQueryResult status;
    if (!valid(symbol, pfn, cudaVersion, flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pfn = find(symbol, cudaVersion, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, &status);
    if (symbolStatus != NULL) {
        *symbolStatus = status;
    }
    return CUDA_SUCCESS;
}

/* The form of CUDA 11.3 says in its result what the later one says in a status, and then leaves the pointer alone. */
SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    void *found = NULL;
    CUresult result = cuGetProcAddress_v2(symbol, pfn == NULL ? NULL : &found, cudaVersion, flags, NULL);
    if (result != CUDA_SUCCESS || found == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_FOUND;
    }
    *pfn = found;
    return CUDA_SUCCESS;
}

/* Tables that NVIDIA's own libraries share and nobody describes: the simulated driver has none. */
SIM_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    return ppExportTable == NULL || pExportTableId == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}
