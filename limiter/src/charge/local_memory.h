/* Local memory: a kernel whose threads need more of it than its context has makes the driver take as much for every
 * thread that the card can hold, at the kernel's first launch, or when a graph with it is instantiated. The context's
 * stack size then reads what there is; a smaller one set gives it back. Smaller kernels take nothing (measured on an
 * H200, driver 580: 16 KiB a thread are 4 GiB). */
#ifndef VGPU_CHARGE_LOCAL_MEMORY_H
#define VGPU_CHARGE_LOCAL_MEMORY_H

#include "charge/attempt.h"
#include "driver/function_table.h"

/* By how many bytes the current context would grow for a kernel; 0 too where nothing is limited. A CUkernel that is
 * passed as a function is one. A kernel that can never grow a context costs one look at a table. */
uint64_t local_memory_growth(CUfunction function);

/* The same where the stack of each thread is set to so many bytes. */
uint64_t local_memory_growth_to(size_t stack);

/* Before a function ends, for its address may come to stand for another at once; and after the stack size was set. */
void local_memory_forget_all(void);

/* Charges `growth` bytes, which may be 0, ahead of the call. Where `is_refused`, the driver must not be called. */
struct attempt local_memory_begin_launch(const char *function_name, uint64_t growth);

/* After it: charged is what was taken. Returns the answer for the program. */
CUresult local_memory_end_launch(struct attempt *attempt, CUresult result);

/* The body of a call after which the function may run, in the current context; the arguments are the real call's. */
#define LAUNCH_WITH_LOCAL_MEMORY(function, name, ...)                      \
    do {                                                                   \
        uint64_t growth = local_memory_growth(function);                   \
        if (growth == 0) return REAL(name)(__VA_ARGS__);                   \
        struct attempt attempt = local_memory_begin_launch(#name, growth); \
        if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;           \
        CUresult result;                                                   \
        do result = REAL(name)(__VA_ARGS__);                               \
        while (attempt_retry(&attempt, result));                           \
        return local_memory_end_launch(&attempt, result);                  \
    } while (0)

#endif
