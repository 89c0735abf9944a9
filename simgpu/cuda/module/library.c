/* Libraries: code that belongs to no context and is charged to none, until it becomes a module of each context that
 * uses it (measured on an H200, driver 580). */
#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/module/module.h"
#include "hardware/export.h"

#include <stdlib.h>

struct CUlib_st {
    struct CUlib_st *next;
    CUfunction kernels;
};

static CUlibrary libraries;

static CUlibrary *link_of(CUlibrary library) {
    CUlibrary *link = &libraries;
    while (*link != NULL && *link != library) {
        link = &(*link)->next;
    }
    return link;
}

/* The library's module in the current context; loads it when it is not loaded there. */
static CUresult module_in_current_context(CUmodule *out, CUlibrary library) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *out = module_of(library, context);
    return *out != NULL ? CUDA_SUCCESS : module_load(out, library);
}

static CUresult load(CUlibrary *library, const void *code) {
    REQUIRE(library != NULL && code != NULL, CUDA_ERROR_INVALID_VALUE);
    CUlibrary made = calloc(1, sizeof *made);
    REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    made->next = libraries;
    libraries = made;
    *library = made;
    LEAVE(CUDA_SUCCESS);
}

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are NVIDIA's */
EXPORTED CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                    void **jitOptionsValues, unsigned int numJitOptions,
                                    CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                    unsigned int numLibraryOptions) {
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    ENTER();
    return load(library, code);
}

EXPORTED CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                                        void **jitOptionsValues, unsigned int numJitOptions,
                                        CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                        unsigned int numLibraryOptions) {
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    ENTER();
    return load(library, fileName);
}
/* NOLINTEND(readability-non-const-parameter) */

EXPORTED CUresult cuLibraryUnload(CUlibrary library) {
    ENTER();
    CUlibrary *link = link_of(library);
    REQUIRE(library != NULL && *link == library, CUDA_ERROR_INVALID_VALUE);
    *link = library->next;
    modules_unload_of(library);
    functions_free(&library->kernels);
    free(library);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    ENTER();
    REQUIRE(pMod != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(library != NULL && *link_of(library) == library, CUDA_ERROR_INVALID_HANDLE);
    LEAVE(module_in_current_context(pMod, library));
}

EXPORTED CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
    ENTER();
    REQUIRE(pKernel != NULL && name != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(library != NULL && *link_of(library) == library, CUDA_ERROR_INVALID_HANDLE);
    CUfunction kernel = function_named(&library->kernels, name);
    REQUIRE(kernel != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    kernel->library = library;
    *pKernel = (CUkernel)kernel;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    CUmodule module;
    ENTER();
    REQUIRE(pFunc != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(kernel != NULL, CUDA_ERROR_INVALID_HANDLE);
    CUfunction of_library = (CUfunction)kernel;
    CUresult result = module_in_current_context(&module, of_library->library);
    REQUIRE(result == CUDA_SUCCESS, result);
    *pFunc = function_named(&module->functions, of_library->name);
    LEAVE(*pFunc != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
