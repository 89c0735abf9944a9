/* Functions of the program's that a stream calls. */
#ifndef SIMGPU_CUDA_STREAM_HOST_FUNCTION_H
#define SIMGPU_CUDA_STREAM_HOST_FUNCTION_H

#include <cuda.h>

#include "cuda/queue/stream_waits.h"

/* The stream makes the call behind its work so far; its later work waits until the function returns. */
CUresult stream_call(CUstream stream, struct host_call call);

#endif
