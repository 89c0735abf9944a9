/* The clock of all times in the simulated GPU. */
#ifndef HARDWARE_CLOCK_H
#define HARDWARE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, ns. */
uint64_t clock_now_ns(void);

#endif
