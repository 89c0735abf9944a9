/* What a capture means for the functions that are called while it lasts. Under the driver's lock. */
#ifndef CUDA_CAPTURE_H
#define CUDA_CAPTURE_H

#include "cuda_driver.h"

/* For a function that is unsafe during a capture: its error, which breaks the capture, or success. */
CUresult capture_unsafe(void);

/* Whether the stream is capturing: into which graph, and the error of whatever is called on it once it is broken. */
bool capture_graph(CUstream stream, CUgraph *graph, CUresult *result);

#endif
