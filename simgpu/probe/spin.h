/* The verbs `spin` and `fault`. */
#ifndef SIMGPU_PROBE_SPIN_H
#define SIMGPU_PROBE_SPIN_H

/* Launches kernels of the given microseconds until a launch fails; then prints the error and returns 1. */
int spin(unsigned us);

/* Launches a kernel with an illegal access, on a simulated card only; prints the error and returns 1. */
int fault(void);

#endif
