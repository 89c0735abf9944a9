/* Table of the CUDA and NVML functions in driver/functions.h that are HOOKED or CALLED: each with the library's
 * wrapper, if any, and the address in NVIDIA's library. No function here takes a lock of process/lock.h. */
#ifndef VGPU_DRIVER_FUNCTION_TABLE_H
#define VGPU_DRIVER_FUNCTION_TABLE_H

#include <stdbool.h>

#include "driver/abi.h"

#define EXPORT __attribute__((visibility("default")))

enum library { CUDA, NVML, LIBRARIES };

#define HOOKED(name, class) FN_##name,
#define CALLED(name, class) FN_##name,
enum function {
#include "driver/functions.h"
    FUNCTIONS,
};

/* NVIDIA's function `name`, to be called; loads NVIDIA's library if it is not loaded. Where that library lacks the
 * function, a substitute that returns CUDA_ERROR_NOT_FOUND or NVML_ERROR_FUNCTION_NOT_FOUND. */
#define REAL(name) ((__typeof__(&(name)))functions_real(FN_##name))

/* The address behind REAL. */
void *functions_real(enum function function);

/* Whether NVIDIA's library exports the function; loads that library if it is not loaded. */
bool functions_has(enum function function);

/* The wrapper, where `address` is a HOOKED function of NVIDIA's libraries, else `address`. Loads nothing. */
void *functions_substitute(void *address);

/* The handle of NVIDIA's library, by which dlsym finds its functions; NULL where it is not loaded. Loads nothing. */
void *functions_handle(enum library library);

/* Whether dlsym with this handle searches NVIDIA's library, of those that are known already. */
bool functions_is_handle(const void *handle);

/* Whether the name begins as those of CUDA's driver, or of NVML; other libraries have such names too. */
bool functions_is_named_as(const char *name, enum library library);

/* The soname of NVIDIA's library. */
const char *functions_soname(enum library library);

/* The wrapper of an exported name; NULL where it is not HOOKED. Loads nothing. */
void *functions_wrapper(const char *name);

/* The wrapper of an exported name, if NVIDIA's library is loaded and exports that name; else NULL. Loads nothing. */
void *functions_loaded_wrapper(const char *name);

/* Whether the exported name is a HOOKED function's. */
bool functions_is_hooked(const char *name);

#endif
