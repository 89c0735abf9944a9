/* Lists of answers, on the heap: threads of programs have small stacks, and a real driver takes little of them. */
#ifndef SIMGPU_NVML_LISTS_H
#define SIMGPU_NVML_LISTS_H

#include <stddef.h>

/* Frees the list that a variable holds at the end of its block. */
#define FREED_AT_END __attribute__((cleanup(nvml_list_free)))

/* Returns `count` zeroed entries of `size` bytes, or NULL. */
void *nvml_list(size_t count, size_t size);

/* `variable` is the address of a pointer to a list, or to NULL. */
void nvml_list_free(void *variable);

#endif
