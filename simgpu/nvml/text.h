/* Results that are text. */
#ifndef SIMGPU_NVML_TEXT_H
#define SIMGPU_NVML_TEXT_H

#include "nvml/types.h"

/* Copies the text into the caller's buffer. NVML_ERROR_INSUFFICIENT_SIZE when the buffer is too small. */
nvmlReturn_t nvml_copy_text(char *out, unsigned length, const char *text);

#endif
