/* The verb `spin`. */
#ifndef SIMGPU_PROBE_SPIN_H
#define SIMGPU_PROBE_SPIN_H

/* Launches kernels of the given microseconds until a launch fails; then prints the error and returns 1. */
int spin(unsigned us);

#endif
