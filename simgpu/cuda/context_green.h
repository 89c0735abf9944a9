/* Green contexts and the resources they are made of. */
#ifndef CUDA_GREEN_H
#define CUDA_GREEN_H

#include "driver.h"

CUgreenCtx green_of(CUcontext context); /* NULL for any other context */
const CUdevResource *green_resource(CUgreenCtx green);
const CUdevResource *described_resource(CUdevResourceDesc desc);

#endif
