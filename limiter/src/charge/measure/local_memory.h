/* Charges local memory: what the driver reserves on the card for the threads of kernels that spill registers or have
 * large stack frames.
 *
 * When a kernel needs more local memory per thread than its context has, the driver grows the context by the
 * difference, times all threads that the card can hold: at the kernel's first launch, or when a graph with it is
 * instantiated. Kernels that need less take nothing. CU_LIMIT_STACK_SIZE then reads what the context has per thread;
 * setting it lower gives the memory back. (Measured on an H200, driver 580: 16 KiB per thread are 4 GiB.)
 *
 * All functions are for the calling thread's current context. The caller holds no lock. */
#ifndef VGPU_CHARGE_MEASURE_LOCAL_MEMORY_H
#define VGPU_CHARGE_MEASURE_LOCAL_MEMORY_H

#include "charge/reserve/attempt.h"

/* Upper bound, in bytes, of how much launching `function` grows the current context; 0 without limits or if the driver
 * does not know the function. A CUkernel may be passed as a CUfunction. A kernel that is known to need no more than a
 * new context has costs one table look-up. */
uint64_t local_memory_growth(CUfunction function);

/* Upper bound, in bytes, of how much the current context grows when its stack size is set to `stack` bytes per
 * thread. */
uint64_t local_memory_growth_to(size_t stack);

/* Empties the table of small kernels. Call before functions are unloaded, for a new function may get an old address,
 * and after the stack size was set. */
void local_memory_forget_all(void);

/* Reserves `growth` bytes before a launch or instantiation; 0 charges nothing. The driver is called while
 * attempt_needs_call says so. */
struct attempt local_memory_begin_launch(const char *function_name, uint64_t growth);

/* Sets the charge to what the driver took, and closes the attempt. Returns the result for the program, which is
 * `result`. */
CUresult local_memory_end_launch(struct attempt *attempt, CUresult result);

#endif
