/* Modules, each of which takes of its context's card what the card's line says, and their functions. A kernel computes
 * nothing: its time is as many microseconds as the number at the end of its name ("busy_250" for 250; 10 without). */
#define _GNU_SOURCE
#include "driver.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KERNEL_US 10

static CUmodule modules;

static uint64_t duration_ns(const char *name) {
    size_t digits = strlen(name);
    while (digits > 0 && isdigit((unsigned char)name[digits - 1])) {
        digits--;
    }
    uint64_t us = name[digits] == '\0' ? DEFAULT_KERNEL_US : strtoull(name + digits, NULL, 10);
    return us * 1000;
}

CUfunction function_named(CUfunction *list, const char *name) {
    for (CUfunction each = *list; each != NULL; each = each->next) {
        if (strcmp(each->name, name) == 0) {
            return each;
        }
    }
    CUfunction made = calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (struct CUfunc_st){.next = *list, .duration_ns = duration_ns(name), .local = local_bytes(name)};
        (void)snprintf(made->name, sizeof made->name, "%s", name);
        *list = made;
    }
    return made;
}

void functions_free(CUfunction *list) {
    while (*list != NULL) {
        CUfunction gone = *list;
        *list = gone->next;
        free(gone);
    }
}

CUresult module_load(CUmodule *out, CUlibrary library) {
    Card card;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS && !device_card(context->device, &card)) {
        result = CUDA_ERROR_UNKNOWN;
    }
    if (result == CUDA_SUCCESS) {
        result = device_charge(context->device, card.module);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    CUmodule made = malloc(sizeof *made);
    if (made == NULL) {
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
    while (module != NULL && (module->library != library || module->context != context)) {
        module = module->next;
    }
    return module;
}

/* Takes it off the list; what follows it stands in its place. */
static void drop(CUmodule *link) {
    CUmodule gone = *link;
    *link = gone->next;
    device_release(gone->context->device, gone->charged);
    functions_free(&gone->functions);
    free(gone);
}

/* Those of that context or of that library; either may be NULL. */
static void drop_all(CUcontext context, CUlibrary library) {
    for (CUmodule *link = &modules; *link != NULL;) {
        if ((*link)->context == context || (library != NULL && (*link)->library == library)) {
            drop(link);
        } else {
            link = &(*link)->next;
        }
    }
}

void modules_unload_of(CUlibrary library) { drop_all(NULL, library); }

void modules_free_of(CUcontext context) { drop_all(context, NULL); }

static CUresult load(CUmodule *module, const void *image) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(module != NULL && image != NULL, CUDA_ERROR_INVALID_VALUE);
    LEAVE(module_load(module, NULL));
}

SIM_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    ENTER();
    return load(module, fname);
}

SIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER();
    return load(module, image);
}

SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                       CUjit_option *options, void **optionValues) {
    (void)numOptions;
    (void)options;
    (void)optionValues;
    ENTER();
    return load(module, image);
}

SIM_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    ENTER();
    return load(module, fatCubin);
}

SIM_EXPORT CUresult cuModuleUnload(CUmodule hmod) {
    ENTER();
    for (CUmodule *link = &modules; *link != NULL; link = &(*link)->next) {
        if (*link == hmod) {
            drop(link);
            LEAVE(CUDA_SUCCESS);
        }
    }
    LEAVE(CUDA_ERROR_INVALID_HANDLE);
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    ENTER();
    REQUIRE(hfunc != NULL && name != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(hmod != NULL, CUDA_ERROR_INVALID_HANDLE);
    *hfunc = function_named(&hmod->functions, name);
    LEAVE(*hfunc != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
