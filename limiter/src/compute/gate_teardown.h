/* What launches leave behind ends: with a stream, and with contexts. */
#ifndef VGPU_COMPUTE_GATE_TEARDOWN_H
#define VGPU_COMPUTE_GATE_TEARDOWN_H

#include "driver/abi.h"

/* Before a stream is destroyed, or any context ends. */
void gate_teardown_stream(CUstream stream);
void gate_teardown_contexts(void);

#endif
