/* What a kernel's name says about it: simulated kernels have no code. */
#ifndef SIMGPU_CUDA_MODULE_KERNEL_NAME_H
#define SIMGPU_CUDA_MODULE_KERNEL_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* ns of one iteration of a kernel whose first parameter is the number of iterations: the number at the end of a name
 * that begins with "loop", "loop_1000" for 1 us; 0 for other kernels. */
uint64_t kernel_iteration_ns(const char *name);
/* ns of work: the number of microseconds at the end of the name, "busy_250" for 250 us; 10 us without a number. */
uint64_t kernel_duration_ns(const char *name);
/* ns for which its loading keeps the host: 2 ms of one whose name begins with "lazy", as measured (0.6 to 3 ms), which
 * cuFuncLoad loads, or else its first launch; 0 for other kernels. */
uint64_t kernel_loading_ns(const char *name);
/* ns of more work of the card's in the first launch: 2 ms of one whose name begins with "cold"; 0 for other kernels. */
uint64_t kernel_warming_ns(const char *name);
/* ns for which each launch stays in the driver before the card has it: the number of microseconds behind "late" at the
 * start of the name, "late40_250" for 40 us; 0 without it. */
uint64_t kernel_launching_ns(const char *name);
/* Bytes of local memory per thread: the number behind "local" at the start of the name, "local16384_busy_10" for 16384;
 * 0 without it. */
uint64_t kernel_local_bytes(const char *name);
/* Whether it spins before it works, until a word of host memory is at least a value: "await" at the start of its name.
 * Its first parameter is the word's address, the second one the value. */
bool kernel_spins(const char *name);
/* ns after which a kernel that spins gives up, and writes its value plus 1 into the word: the number of milliseconds
 * behind "await" at the start of its name, "await100_5" for 100 ms; 0 without it: never. */
uint64_t kernel_spin_timeout_ns(const char *name);
/* Number of ranks of the collective whose kernels have this name: the number behind "collective" at the start of it,
 * "collective2_500" for 2, of 1 to 16; 0 for other kernels. Its first parameter is a number of 64 bits, which the ranks
 * of one collective chose, its second one, of 32 bits, is different in each of their collectives. */
uint32_t kernel_ranks(const char *name);
/* Percent of the card's multiprocessors that it fills: the number behind "fill" at the start of the name, "fill25_10"
 * for 25; 0 without it: all of them. Matters to clients of an MPS server only. */
uint32_t kernel_fills(const char *name);
/* Whether it reads an address that does not exist: "fault" at the start of the name. */
bool kernel_faults(const char *name);
/* Whether it calls malloc: "heap" at the start of the name. */
bool kernel_uses_heap(const char *name);

#endif
