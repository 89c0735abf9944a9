/* The fields of multicast objects. */
#ifndef SIMGPU_CUDA_VMM_MULTICAST_STATE_H
#define SIMGPU_CUDA_VMM_MULTICAST_STATE_H

#include <stdint.h>

struct physical;

struct binding {
    struct binding *next;
    uint64_t offset;
    uint64_t size;
    struct physical *memory;
};

struct multicast {
    unsigned wanted; /* number of devices */
    unsigned added;  /* one bit for each device */
    struct binding *bindings;
};

#endif
