/* cuGetProcAddress: finds, by base name, the newest form of a function that is not newer than the version asked for.
 * Results, statuses and pointers that are not set are as measured with a 580 driver. */
#include <stdbool.h>
#include <string.h>

#include "cuda/driver/driver.h"
#include "hardware/export.h"

struct entry_point {
    const char *name;
    void (*function)(void);
    void (*per_thread)(void); /* NULL when there is no form for the per-thread default stream */
    int version;
    int per_thread_version;
};

#define FUNCTION(symbol)             ((void (*)(void))(symbol))
#define ENTRY(base, version, symbol) {#base, FUNCTION(symbol), NULL, version, 0},
#define PER_THREAD_ENTRY(base, version, per_thread_version, symbol, suffix) \
    {#base, FUNCTION(symbol), FUNCTION(symbol##suffix), version, per_thread_version},

static const struct entry_point entries[] = {
#include "cuda/driver/entry_points.h"
};

static bool is_valid(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    const cuuint64_t both = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return symbol && pfn && version <= DRIVER_CUDA_VERSION && flags <= both;
}

/* The function for a caller of that CUDA version; NULL when the entry is newer. When a per-thread form exists and is
 * asked for, a version older than that form gets NULL and not the legacy form. */
static void *function_for(const struct entry_point *entry, int version, bool per_thread) {
    bool is_wanted = per_thread && entry->per_thread;
    if (version < (is_wanted ? entry->per_thread_version : entry->version)) return NULL;
    return is_wanted ? (void *)entry->per_thread : (void *)entry->function;
}

/* The function for the base name, and why there is none. */
static void *find_entry(const char *symbol, int version, bool per_thread, CUdriverProcAddressQueryResult *status) {
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].name, symbol) != 0) continue;
        void *found = function_for(&entries[i], version, per_thread);
        *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (found) return found;
    }
    return NULL;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbolStatus) {
    CUdriverProcAddressQueryResult status;
    if (!is_valid(symbol, function, version, flags)) return CUDA_ERROR_INVALID_VALUE;
    *function = find_entry(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, &status);
    if (symbolStatus) *symbolStatus = status;
    return CUDA_SUCCESS;
}

/* The form of CUDA 11.3: CUDA_ERROR_NOT_FOUND stands for every status but success, and then the pointer is not set. */
EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
    void *found = NULL;
    CUresult result = cuGetProcAddress_v2(symbol, !function ? NULL : &found, version, flags, NULL);
    if (result != CUDA_SUCCESS || !found) return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_FOUND;
    *function = found;
    return CUDA_SUCCESS;
}

/* The undocumented tables of functions that NVIDIA's own libraries use. None is simulated. */
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    return !table || !id ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}
