/* A GPU's UUID: 16 bytes, and `GPU-8-4-4-4-12` as text. Pure. */
#ifndef VGPU_COMMON_GPU_UUID_H
#define VGPU_COMMON_GPU_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UUID_SIZE     16
#define GPU_UUID_TEXT 41 /* with the final zero */

/* Reads `GPU-8-4-4-4-12` into 16 bytes; false where it is none. `length` is the text's. */
bool gpu_uuid_parse(const char *text, size_t length, uint8_t uuid[UUID_SIZE]);

/* Writes it so. */
void gpu_uuid_write(const uint8_t uuid[UUID_SIZE], char text[GPU_UUID_TEXT]);

#endif
