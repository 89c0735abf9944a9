/* The clock of all times in the simulated GPU. */
#ifndef SIMGPU_HARDWARE_CLOCK_H
#define SIMGPU_HARDWARE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, ns. */
uint64_t clock_now_ns(void);

/* Works for that long, as a driver does: a sleep of microseconds takes tens of them more. */
void clock_pass_ns(uint64_t ns);

#endif
