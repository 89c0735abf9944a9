/* Memory imported from another API, or imported again by this process that exported it. */
#ifndef VGPU_HOOKS_MEMORY_EXTERNAL_MEMORY_H
#define VGPU_HOOKS_MEMORY_EXTERNAL_MEMORY_H

#include "driver/abi.h"

/* Ends the references of a pointer or object of external memory that was freed. Does nothing for others, at the cost of
 * one load if there is no external memory. The caller holds no lock. */
void external_memory_end(CUdeviceptr pointer);

#endif
