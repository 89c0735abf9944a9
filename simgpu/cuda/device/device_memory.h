/* Bytes that this process takes from a device: as its own, or as memory that other processes may open. */
#ifndef SIMGPU_CUDA_DEVICE_DEVICE_MEMORY_H
#define SIMGPU_CUDA_DEVICE_DEVICE_MEMORY_H

#include <cuda.h>
#include <stdint.h>

#include "hardware/units.h"
#include "ledger/shared_memory.h"

#define PAGE       (2 * MIB)  /* the unit in which a real driver takes memory from a card */
#define SMALL_UNIT 512        /* the unit of allocations within a page */
#define POOL_BLOCK (32 * MIB) /* the unit in which a pool takes memory from a card */

CUresult device_charge(CUdevice ordinal, uint64_t bytes);
void device_release(CUdevice ordinal, uint64_t bytes);

/* Adds to the contexts that this process has on a device: NVML lists processes with contexts only. */
void device_add_contexts(CUdevice ordinal, int added);

/* Makes charged bytes shared memory, and sets `shared_id` to its id. Does nothing when `shared_id` is not 0. */
CUresult device_share(CUdevice ordinal, uint64_t bytes, uint64_t *shared_id);
/* Gives bytes back: the hold of shared memory when `shared_id` is not 0, else the charge. */
void device_give_back(CUdevice ordinal, uint64_t bytes, uint64_t shared_id);

/* Opens a descriptor of shared memory for the program. */
CUresult shared_memory_export(uint64_t shared_id, int *out);
/* Holds the shared memory of a program's descriptor. `attribution` tells memory that this process made from memory of
 * other processes. */
CUresult shared_memory_import(int descriptor, enum attribution *attribution, struct shared_memory *out);

#endif
