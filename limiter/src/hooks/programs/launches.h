/* Around a call that may make the current context grow for a kernel's local memory: see local.h. */
#ifndef VGPU_HOOKS_PROGRAMS_LAUNCHES_H
#define VGPU_HOOKS_PROGRAMS_LAUNCHES_H

#include "charge/attempt.h"
#include "charge/local_memory.h"
#include "driver/function_table.h"

/* Charges `growth` bytes, which may be 0, ahead of the call. Where `is_refused`, the driver must not be called. */
struct attempt launches_begin(const char *what, uint64_t growth);

/* After it: charged is what was taken. Returns the answer for the program. */
CUresult launches_finish(struct attempt *attempt, CUresult result);

/* The body of a call after which the function may run, in the current context; the arguments are the real call's. */
#define LAUNCH(function, name, ...)                              \
    do {                                                         \
        uint64_t growth = local_memory_growth(function);         \
        if (growth == 0) return REAL(name)(__VA_ARGS__);         \
        struct attempt attempt = launches_begin(#name, growth);  \
        if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                         \
        do result = REAL(name)(__VA_ARGS__);                     \
        while (attempt_retry(&attempt, result));                 \
        return launches_finish(&attempt, result);                \
    } while (0)

#endif
