/* Memory of another API's, or of our own by an exported descriptor. */
#ifndef VGPU_HOOKS_MEMORY_EXTERNAL_MEMORY_H
#define VGPU_HOOKS_MEMORY_EXTERNAL_MEMORY_H

#include "driver/abi.h"

/* A pointer that was not charged was freed: it may be one to external memory. */
void external_memory_end(CUdeviceptr pointer);

#endif
