/* A GPU's UUID in its two forms: 16 bytes, as CUDA reports it, and the text `GPU-8-4-4-4-12` in lower-case hexadecimal,
 * as NVML reports it. Pure. */
#ifndef VGPU_COMMON_GPU_UUID_H
#define VGPU_COMMON_GPU_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UUID_SIZE     16
#define GPU_UUID_TEXT 41 /* characters, with the terminating zero */

/* Parses `length` characters. False, with undefined bytes in `uuid`, where they are no such UUID. */
bool gpu_uuid_parse(const char *text, size_t length, uint8_t uuid[UUID_SIZE]);

/* Writes the text form, with the terminating zero. */
void gpu_uuid_write(const uint8_t uuid[UUID_SIZE], char text[GPU_UUID_TEXT]);

#endif
