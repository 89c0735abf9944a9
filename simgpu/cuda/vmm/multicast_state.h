/* The fields of multicast objects. */
#ifndef SIMGPU_CUDA_VMM_MULTICAST_STATE_H
#define SIMGPU_CUDA_VMM_MULTICAST_STATE_H

#include <stdint.h>

struct Physical;

typedef struct Binding {
    struct Binding *next;
    uint64_t offset;
    uint64_t size;
    struct Physical *memory;
} Binding;

typedef struct Multicast {
    unsigned wanted; /* number of devices */
    unsigned added;  /* one bit for each device */
    Binding *bindings;
} Multicast;

#endif
