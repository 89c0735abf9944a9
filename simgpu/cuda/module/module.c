/* Each module is charged as the line of the context's card says. */
#include "cuda/module/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/module/kernel_name.h"
#include "cuda/queue/stream_waits.h"
#include "hardware/clock.h"
#include "hardware/export.h"

static CUmodule modules;

CUfunction function_named(CUfunction *list, const char *name) {
    for (CUfunction function = *list; function; function = function->next)
        if (strcmp(function->name, name) == 0) return function;
    CUfunction made = calloc(1, sizeof *made);
    if (made) {
        *made = (struct CUfunc_st){
            .next = *list,
            .duration_ns = kernel_duration_ns(name),
            .iteration_ns = kernel_iteration_ns(name),
            .loading_ns = kernel_loading_ns(name),
            .warming_ns = kernel_warming_ns(name),
            .local = kernel_local_bytes(name),
            .uses_heap = kernel_uses_heap(name),
        };
        (void)snprintf(made->name, sizeof made->name, "%s", name);
        *list = made;
    }
    return made;
}

void functions_free(CUfunction *list) {
    while (*list) {
        CUfunction gone = *list;
        *list = gone->next;
        free(gone);
    }
}

void function_load(CUfunction function) {
    clock_pass_ns(function->loading_ns);
    function->loading_ns = 0;
    if (function->kernel) function->kernel->loading_ns = 0;
}

CUresult module_load(CUmodule *out, CUlibrary library) {
    struct card card;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS && !device_card(context->device, &card)) result = CUDA_ERROR_UNKNOWN;
    if (result == CUDA_SUCCESS) result = device_charge(context->device, card.module);
    if (result != CUDA_SUCCESS) return result;
    CUmodule made = malloc(sizeof *made);
    if (!made) {
        device_release(context->device, card.module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUmod_st){.next = modules, .context = context, .library = library, .charged = card.module};
    modules = made;
    *out = made;
    return CUDA_SUCCESS;
}

CUmodule module_of(CUlibrary library, CUcontext context) {
    CUmodule module = modules;
    while (module && (module->library != library || module->context != context)) module = module->next;
    return module;
}

/* Unlinks and frees the module; `link` then points to the next one. */
static void drop(CUmodule *link) {
    CUmodule gone = *link;
    *link = gone->next;
    device_release(gone->context->device, gone->charged);
    functions_free(&gone->functions);
    free(gone);
}

/* Drops the modules of a context or of a library; the other argument is NULL. */
static void drop_all(CUcontext context, CUlibrary library) {
    for (CUmodule *link = &modules; *link;)
        if ((*link)->context == context || (library && (*link)->library == library))
            drop(link);
        else
            link = &(*link)->next;
}

void modules_unload_of(CUlibrary library) { drop_all(NULL, library); }

void modules_free_of(CUcontext context) { drop_all(context, NULL); }

/* Only the text of PTX is read. */
static bool text_uses_heap(const char *text) {
    return strncmp(text, ".version", sizeof ".version" - 1) == 0 && strstr(text, "malloc");
}

static CUresult load(CUmodule *module, const void *image) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    stream_waits_await_open();
    result = module_load(module, NULL);
    if (result != CUDA_SUCCESS) return result;
    (*module)->uses_heap = text_uses_heap(image);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(module, fname);
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(module, image);
}

/* NOLINTBEGIN(readability-non-const-parameter): the signature is NVIDIA's */
EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned numOptions, CUjit_option *options,
                                   void **optionValues) {
    (void)numOptions;
    (void)options;
    (void)optionValues;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(module, image);
}
/* NOLINTEND(readability-non-const-parameter) */

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return load(module, fatCubin);
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    stream_waits_await_open();
    for (CUmodule *link = &modules; *link; link = &(*link)->next) {
        if (*link == module) {
            drop(link);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    *function = function_named(&module->functions, name);
    if (!*function) return CUDA_ERROR_OUT_OF_MEMORY;
    (*function)->uses_heap |= module->uses_heap;
    return CUDA_SUCCESS;
}
