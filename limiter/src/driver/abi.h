/* The prototypes of the functions that we hook or call. */
#ifndef VGPU_DRIVER_ABI_H
#define VGPU_DRIVER_ABI_H

/* NVIDIA's own switch: declares every version and stream variant by its exported name, and no macros over them. */
#define __CUDA_API_VERSION_INTERNAL /* NOLINT(bugprone-reserved-identifier,cert-dcl*) */
#include <cuda.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS /* the same of NVML */
#include <nvml.h>

#endif
