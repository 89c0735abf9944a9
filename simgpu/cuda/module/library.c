/* Libraries: code that belongs to no context and is charged to none, until it becomes a module of each context that
 * uses it (measured on an H200, driver 580). */
#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/module/module.h"
#include "hardware/export.h"

struct CUlib_st {
    struct CUlib_st *next;
    CUfunction kernels;
};

static CUlibrary libraries;

static CUlibrary *link_of(CUlibrary library) {
    CUlibrary *link = &libraries;
    while (*link && *link != library) link = &(*link)->next;
    return link;
}

/* The library's module in the current context; loads it when it is not loaded there. */
static CUresult module_in_current_context(CUmodule *out, CUlibrary library) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    *out = module_of(library, context);
    return *out ? CUDA_SUCCESS : module_load(out, library);
}

static CUresult load(CUlibrary *library, const void *code) {
    if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
    CUlibrary made = calloc(1, sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->next = libraries;
    libraries = made;
    *library = made;
    return CUDA_SUCCESS;
}

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are NVIDIA's */
EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                  void **jitOptionsValues, unsigned numJitOptions, CUlibraryOption *libraryOptions,
                                  void **libraryOptionValues, unsigned numLibraryOptions) {
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(library, code);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                                      void **jitOptionsValues, unsigned numJitOptions, CUlibraryOption *libraryOptions,
                                      void **libraryOptionValues, unsigned numLibraryOptions) {
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(library, fileName);
}
/* NOLINTEND(readability-non-const-parameter) */

EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUlibrary *link = link_of(library);
    if (!library || *link != library) return CUDA_ERROR_INVALID_VALUE;
    *link = library->next;
    modules_unload_of(library);
    functions_free(&library->kernels);
    free(library);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    if (!library || *link_of(library) != library) return CUDA_ERROR_INVALID_HANDLE;
    return module_in_current_context(module, library);
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    if (!library || *link_of(library) != library) return CUDA_ERROR_INVALID_HANDLE;
    CUfunction kernel = function_named(&library->kernels, name);
    if (!kernel) return CUDA_ERROR_OUT_OF_MEMORY;
    kernel->library = library;
    *out = (CUkernel)kernel;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    CUmodule module;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    CUfunction of_library = (CUfunction)kernel;
    CUresult result = module_in_current_context(&module, of_library->library);
    if (result != CUDA_SUCCESS) return result;
    *function = function_named(&module->functions, of_library->name);
    if (!*function) return CUDA_ERROR_OUT_OF_MEMORY;
    (*function)->kernel = of_library;
    return CUDA_SUCCESS;
}
