/* One simulated card. */
#ifndef SIMGPU_HARDWARE_CARD_H
#define SIMGPU_HARDWARE_CARD_H

#include <stdbool.h>
#include <stdint.h>

#define UUID_SIZE   48
#define MODEL_SIZE  96
#define MAX_NVLINKS 18

/* What a line of the file `cards` says. Sizes in bytes. */
struct card {
    char uuid[UUID_SIZE];
    unsigned char uuid_bytes[16];
    char model[MODEL_SIZE];
    unsigned index;
    unsigned minor;
    unsigned numa;
    unsigned recovery;     /* nvmlDeviceGpuRecoveryAction_t: the repair that NVML says the card needs; 0 = none */
    unsigned compute_mode; /* nvmlComputeMode_t: 0 = default, 2 = prohibited, 3 = one process only; CUDA ignores it */
    unsigned capability;   /* CUDA's compute capability as NVML says it: 90 is 9.0; CUDA ignores it */
    unsigned nvlink_count;
    char nvlink[MAX_NVLINKS][UUID_SIZE];
    uint64_t memory;   /* NVML's total */
    uint64_t reserved; /* part of `memory` that no program can use; CUDA's total is memory - reserved */
    uint64_t context;  /* charged for each CUDA context */
    uint64_t module;   /* charged for each loaded module */
    bool is_healthy;
    bool is_mig;
};

#endif
