/* Streams. */
#ifndef SIMGPU_CUDA_STREAM_STREAM_H
#define SIMGPU_CUDA_STREAM_STREAM_H

#include <cuda.h>
#include <stdint.h>

CUresult stream_make(CUstream *out, CUcontext context, unsigned flags);
void streams_free_of(CUcontext context);
/* The stream that a handle means: of a default stream, the one of the current context. NULL when there is none. */
CUstream stream_find(CUstream handle);
/* The context of a stream; of a default stream the current one, NULL when there is none. */
CUcontext stream_context(CUstream stream);
/* Adds work of that duration to the stream. */
CUresult stream_run(CUstream stream, uint64_t duration_ns);

#endif
