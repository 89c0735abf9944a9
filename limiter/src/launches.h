/* Around a call that may make the current context grow for a kernel's local memory: see local.h. */
#ifndef VGPU_LAUNCHES_H
#define VGPU_LAUNCHES_H

#include "attempt.h"

/* Charges `growth` bytes, which may be 0, ahead of the call. Where `is_refused`, the driver must not be called. */
struct attempt launches_begin(const char *what, uint64_t growth);

/* After it: charged is what was taken. Returns the answer for the program. */
CUresult launches_finish(struct attempt *attempt, CUresult result);

#endif
