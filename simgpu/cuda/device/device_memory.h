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

/* Makes charged bytes shared memory, unless they are: `shared_id` is 0 before the first call, and its id after it. */
CUresult device_share(CUdevice ordinal, uint64_t bytes, uint64_t *shared_id);
/* Gives bytes back: the hold of shared memory when `shared_id` is not 0, else the charge. */
void device_give_back(CUdevice ordinal, uint64_t bytes, uint64_t shared_id);

/* Opens a descriptor of shared memory for the program. */
CUresult shared_memory_export(uint64_t shared_id, int *out);
/* Holds the shared memory that a program's descriptor is of. Memory that this process made itself is attributed to it
 * in another way than memory of other processes. */
CUresult shared_memory_import(int descriptor, enum attribution *attribution, struct shared_memory *out);

#endif
