/* PTX texts whose kernels use memory that belongs to a context. Every text has a kernel `user`. */
#ifndef BENCH_DEVICE_CODE_H
#define BENCH_DEVICE_CODE_H

#define PTX_HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

extern const char idle_code[];   /* uses nothing */
extern const char busy_code[];   /* runs for 1 s */
extern const char heap_code[];   /* calls malloc of 64 bytes once */
extern const char printf_code[]; /* calls printf once */
extern const char launch_code[]; /* launches a kernel from the device; must be linked with libcudadevrt.a */

/* `user(u64 bytes, u32 count)` calls malloc(bytes) up to `count` times, writes into each, keeps all, and stores the
 * number of successes in the variable `got` (u32). */
extern const char heap_filling_code[];

#endif
