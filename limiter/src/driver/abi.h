/* Prototypes of the CUDA and NVML functions that the library wraps or calls, from NVIDIA's own headers. */
#ifndef VGPU_DRIVER_ABI_H
#define VGPU_DRIVER_ABI_H

/* NVIDIA's switch for its own library: declares every version and stream variant under its exported name, instead of
 * macros that rename them. */
#define __CUDA_API_VERSION_INTERNAL /* NOLINT(bugprone-reserved-identifier,cert-dcl*) */
#include <cuda.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS /* NVML's switch with that effect */
#include <nvml.h>

#endif
