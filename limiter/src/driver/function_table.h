/* The table of functions: each with our wrapper and with the address that the real library has for it. */
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

/* The real library's own function, to be called; loads the library where nobody has. Where the library lacks it, one
 * that answers "not found". */
#define REAL(name) ((__typeof__(&(name)))functions_real(FN_##name))

void *functions_real(enum function function);

/* Whether the real library exports it. */
bool functions_has(enum function function);

/* Our wrapper where `address` is a function of the real libraries that we hook, else `address`. Loads nothing. */
void *functions_substitute(void *address);

/* Our wrapper by exported name, if the library that it belongs to is loaded and exports it; else NULL. Loads nothing.
 */
void *functions_loaded_wrapper(const char *name);

/* Whether we hook a function of that exported name. */
bool functions_is_hooked(const char *name);

#endif
