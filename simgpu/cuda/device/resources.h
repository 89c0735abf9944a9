/* The multiprocessors of a device as resources that green contexts are made of. */
#ifndef SIMGPU_CUDA_DEVICE_RESOURCES_H
#define SIMGPU_CUDA_DEVICE_RESOURCES_H

#include <cuda.h>

/* All multiprocessors of a device. */
CUdevResource device_resource_whole(void);
const CUdevResource *described_resource(CUdevResourceDesc desc);

#endif
