/* Memory of another API's, or of our own by an exported descriptor. */
#ifndef VGPU_EXTERNAL_H
#define VGPU_EXTERNAL_H

#include "driver/abi.h"

/* A pointer that was not charged was freed: it may be one to external memory. */
void external_end(CUdeviceptr pointer);

#endif
