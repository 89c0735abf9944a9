/* Wrappers of libraries (CUlibrary). A library takes memory in a context when its first function or variable is queried
 * or launched there, not when it is loaded (measured on an H200, driver 580). So the first query of each library is
 * measured, and later ones only if a measurement is due. */
#include "books/hash_table.h"
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "driver/function_table.h"
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

#define LOAD(name, library, ...)                                                   \
    do {                                                                           \
        struct measured_call call = measured_call_begin(#name, 0);                 \
        if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                      \
        CUresult result = REAL(name)(library, __VA_ARGS__);                        \
        if (measured_call_fits(&call, result)) {                                   \
            if (result == CUDA_SUCCESS && library) add_unused((uint64_t)*library); \
            return result;                                                         \
        }                                                                          \
        REAL(cuLibraryUnload)(*library);                                           \
        return measured_call_refuse(&call);                                        \
    } while (0)

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
                                  unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    LOAD(cuLibraryLoadData, library, code, jit, jit_values, jit_count, options, values, count);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
                                      unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    LOAD(cuLibraryLoadFromFile, library, path, jit, jit_values, jit_count, options, values, count);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    take_unused((uint64_t)library);
    local_memory_forget_all();
    CUresult result = REAL(cuLibraryUnload)(library);
    if (result == CUDA_SUCCESS) measured_call_reconcile();
    return result;
}

static CUresult reconcile_after(CUresult result) {
    if (result == CUDA_SUCCESS) measured_call_reconcile_if_due();
    return result;
}

static CUresult refuse_first_use(CUlibrary library) {
    add_unused((uint64_t)library);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Body of a wrapper that queries a library's content. Over the limit the query is refused, but the memory stays until
 * the program unloads the library, for nothing else frees it. The variadic arguments are the real function's. */
#define FIRST_USE(name, library, ...)                                                           \
    do {                                                                                        \
        if (!take_unused((uint64_t)(library))) return reconcile_after(REAL(name)(__VA_ARGS__)); \
        struct measured_call call = measured_call_begin(#name, 0);                              \
        if (call.is_refused) return refuse_first_use(library);                                  \
        CUresult result = REAL(name)(__VA_ARGS__);                                              \
        if (result != CUDA_SUCCESS) add_unused((uint64_t)(library));                            \
        return measured_call_fits(&call, result) ? result : measured_call_refuse(&call);        \
    } while (0)

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    FIRST_USE(cuLibraryGetModule, library, module, library);
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name) {
    FIRST_USE(cuLibraryGetGlobal, library, pointer, bytes, library, name);
}

EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary library, const char *name) {
    FIRST_USE(cuLibraryGetManaged, library, pointer, bytes, library, name);
}

EXPORT CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *symbol) {
    FIRST_USE(cuLibraryGetUnifiedFunction, library, function, library, symbol);
}

static CUlibrary library_of(CUkernel kernel) {
    CUlibrary library = NULL;
    return kernel && REAL(cuKernelGetLibrary)(&library, kernel) == CUDA_SUCCESS ? library : NULL;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    CUlibrary library = library_of(kernel);
    FIRST_USE(cuKernelGetFunction, library, function, kernel);
}
