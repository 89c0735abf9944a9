/* What the wrappers that create contexts share. A context takes some 500 MiB: what the last one on the card took is
 * reserved, then the call is measured. */
#ifndef VGPU_HOOKS_PROGRAMS_CONTEXT_CREATION_H
#define VGPU_HOOKS_PROGRAMS_CONTEXT_CREATION_H

#include "charge/measure/measured_call.h"
#include "charge/nvml/nvml_start.h"

struct context_creation {
    struct measured_call call;
    struct nvml_start nvml_start;
    CUdevice device;
    bool is_probed;
};

/* Before the driver's call. False if the creation is refused: the driver must not be called. */
bool context_creation_begin(struct context_creation *creation, const char *function_name, CUdevice device);

/* After the driver's call. False if the context took the container over its limit: the caller destroys it, and returns
 * `measured_call_refuse(&creation->call)`. */
bool context_creation_fits(struct context_creation *creation, CUresult result);

#endif
