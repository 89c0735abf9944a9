/* What contexts were charged by the card's free memory, because NVML did not show their size. */
#ifndef VGPU_HOOKS_PROGRAMS_CONTEXT_ESTIMATES_H
#define VGPU_HOOKS_PROGRAMS_CONTEXT_ESTIMATES_H

#include "charge/measure/measured_call.h"

/* After a context was created: keeps the estimate of `call`, if it made one, until the context ends. */
void context_estimates_put(CUcontext context, const struct measured_call *call);

/* After the context has ended: releases its estimate. NULL: does nothing. */
void context_estimates_end(CUcontext context);

#endif
