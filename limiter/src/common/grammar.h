/* Limits as text, in the environment's grammar. Pure. Mirrored by vgpu/limits.py. */
#ifndef VGPU_COMMON_GRAMMAR_H
#define VGPU_COMMON_GRAMMAR_H

#include "common/limits.h"

/* Limits as text, in the environment's grammar; NULL stands for unset. */
struct limits_text {
    const char *memory;         /* VGPU_MEMORY_LIMIT: `8GiB`, `8192`, `uuid=8GiB,uuid=4GiB` */
    const char *cores;          /* VGPU_CORES_LIMIT: `30` */
    const char *compute_policy; /* VGPU_COMPUTE_POLICY */
    const char *memory_policy;  /* VGPU_MEMORY_POLICY */
};

/* False when one of them cannot be read. */
bool limits_parse(const struct limits_text *text, struct limits_slot *out);

#endif
