/* Parser of limits that are given as text in environment variables. Pure. The Python parser of the grammar is `parse`
 * in limiter/launch.py, with sizes by `size_bytes` in vgpu/domain/quantity.py. */
#ifndef VGPU_COMMON_GRAMMAR_H
#define VGPU_COMMON_GRAMMAR_H

#include "common/limits.h"

/* Values of the environment variables; NULL stands for an unset one. */
struct limits_text {
    const char *memory;         /* VGPU_MEMORY_LIMIT: `8GiB`, `8192`, `uuid=8GiB,uuid=4GiB` */
    const char *cores;          /* VGPU_CORES_LIMIT: `30` */
    const char *compute_policy; /* VGPU_COMPUTE_POLICY */
    const char *memory_policy;  /* VGPU_MEMORY_POLICY */
};

/* Parses all four values into `out`. False, with undefined contents of `out`, where one of them is not valid. */
bool limits_parse(const struct limits_text *text, struct limits_slot *out);

#endif
