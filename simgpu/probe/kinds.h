/* The ways to allocate that the probe knows. */
#ifndef SIMGPU_PROBE_KINDS_H
#define SIMGPU_PROBE_KINDS_H

#include <cuda.h>
#include <stddef.h>

#define MIB   ((size_t)1 << 20)
#define KINDS "alloc pitch managed async pool graph vmm array array3d mipmap module context"

/* Allocates memory of the device, whose primary context is current, and keeps it. The size is in bytes. */
typedef CUresult (*allocate_function)(CUdevice device, size_t bytes);

/* NULL when there is no kind of that name. */
allocate_function kind_named(const char *name);

#endif
