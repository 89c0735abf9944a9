/* Wrappers of libraries (CUlibrary). A library takes memory in a context when its first function or variable is queried
 * or launched there, not when it is loaded (measured on an H200, driver 580). So the first query of each library is
 * measured, and later ones only if a measurement is due. */
#include "books/hash_table.h"
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "driver/function_table.h"
#include "driver/kernel_loading.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table unused; /* libraries that were not used yet, by handle; guarded by LOCK_LIBRARIES */

static void forget(void) { hash_table_clear(&unused); }
FORGET_IN_CHILD(forget);

/* Adds a library that was loaded, or whose first use failed. */
static void add_unused(uint64_t library) {
    HOLD_LOCK(LOCK_LIBRARIES);
    hash_table_put(&unused, (struct hash_table_entry){.key = library});
}

/* Removes a library that is used or unloaded; returns whether it was unused. */
static bool take_unused(uint64_t library) {
    HOLD_LOCK(LOCK_LIBRARIES);
    return hash_table_take(&unused, library).key != 0;
}

static CUresult finish_load(struct measured_call *call, CUresult result, const CUlibrary *library) {
    if (measured_call_fits(call, result)) {
        if (result == CUDA_SUCCESS && library) add_unused((uint64_t)*library);
        return result;
    }
    REAL(cuLibraryUnload)(*library);
    return measured_call_refuse(call);
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
                                  unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    struct measured_call call = measured_call_begin("cuLibraryLoadData", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(
        &call, REAL(cuLibraryLoadData)(library, code, jit, jit_values, jit_count, options, values, count), library);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                      unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    struct measured_call call = measured_call_begin("cuLibraryLoadFromFile", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(
        &call, REAL(cuLibraryLoadFromFile)(library, path, jit, jit_values, jit_count, options, values, count), library);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    take_unused((uint64_t)library);
    local_memory_forget_all();
    kernel_loading_forget_all();
    struct measured_end end = measured_call_begin_end();
    CUresult result = REAL(cuLibraryUnload)(library);
    measured_call_finish_end(&end, result == CUDA_SUCCESS);
    return result;
}

static CUresult reconcile_after(CUresult result) {
    if (result == CUDA_SUCCESS) measured_call_reconcile_if_due();
    return result;
}

/* A query of a library's content. */
struct library_query {
    CUlibrary library;
    bool is_first_use;         /* the query may make the driver load the library */
    struct measured_call call; /* of a first use */
};

/* Over the limit a first use is refused, but the memory stays until the program unloads the library, for nothing else
 * frees it. */
static struct library_query begin_query(const char *function_name, CUlibrary library) {
    struct library_query query = {.library = library, .is_first_use = take_unused((uint64_t)library)};
    if (query.is_first_use) query.call = measured_call_begin(function_name, 0);
    if (query.call.is_refused) add_unused((uint64_t)library);
    return query;
}

static CUresult finish_query(struct library_query *query, CUresult result) {
    if (!query->is_first_use) return reconcile_after(result);
    if (result != CUDA_SUCCESS) add_unused((uint64_t)query->library);
    if (measured_call_fits(&query->call, result)) return result;
    query->call.estimated = 0; /* the library stays on the card, and its estimate charged */
    return measured_call_refuse(&query->call);
}

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    struct library_query query = begin_query("cuLibraryGetModule", library);
    if (query.call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_query(&query, REAL(cuLibraryGetModule)(module, library));
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name) {
    struct library_query query = begin_query("cuLibraryGetGlobal", library);
    if (query.call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_query(&query, REAL(cuLibraryGetGlobal)(pointer, bytes, library, name));
}

EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name) {
    struct library_query query = begin_query("cuLibraryGetManaged", library);
    if (query.call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_query(&query, REAL(cuLibraryGetManaged)(pointer, bytes, library, name));
}

EXPORT CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *symbol) {
    struct library_query query = begin_query("cuLibraryGetUnifiedFunction", library);
    if (query.call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_query(&query, REAL(cuLibraryGetUnifiedFunction)(function, library, symbol));
}

static CUlibrary library_of(CUkernel kernel) {
    CUlibrary library = NULL;
    return kernel && REAL(cuKernelGetLibrary)(&library, kernel) == CUDA_SUCCESS ? library : NULL;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    struct library_query query = begin_query("cuKernelGetFunction", library_of(kernel));
    if (query.call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_query(&query, REAL(cuKernelGetFunction)(function, kernel));
}
