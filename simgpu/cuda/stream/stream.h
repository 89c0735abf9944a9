/* Streams. */
#ifndef SIMGPU_CUDA_STREAM_STREAM_H
#define SIMGPU_CUDA_STREAM_STREAM_H

#include <cuda.h>
#include <stdint.h>

CUresult stream_make(CUstream *out, CUcontext context, unsigned flags);
void streams_free_of(CUcontext context);
/* The context of a stream; of a default stream the current one, NULL when there is none. */
CUcontext stream_context(CUstream stream);
/* Adds work of that duration to the stream. */
CUresult stream_run(CUstream stream, uint64_t duration_ns);

#endif
