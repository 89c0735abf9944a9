/* The verb `info`. */
#ifndef SIMGPU_PROBE_INFO_H
#define SIMGPU_PROBE_INFO_H

#include <stdbool.h>

/* Prints one line with all devices, or an error. Returns the exit code. */
int info(bool by_proc);

#endif
