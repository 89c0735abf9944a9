/* The clock of all times in the simulated GPU. */
#ifndef SIMGPU_HARDWARE_CLOCK_H
#define SIMGPU_HARDWARE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, ns. */
uint64_t clock_now_ns(void);

#endif
