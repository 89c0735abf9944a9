/* Pages that small allocations share. */
#ifndef SIMGPU_CUDA_ALLOCATION_PAGES_H
#define SIMGPU_CUDA_ALLOCATION_PAGES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Takes `bytes`, a multiple of SMALL_UNIT, of a page with room, or of a new page. */
CUresult pages_take(CUdevice device, uint64_t bytes, bool for_arrays, CUdeviceptr *address);
void pages_give_back(CUdeviceptr address, uint64_t bytes);
/* Makes the page that holds the address shared memory, as device_share. */
CUresult page_share(CUdeviceptr address, uint64_t *shared_id);
uint64_t page_shared_id(CUdeviceptr address); /* 0 = the page is not shared */

#endif
