/* Configuration of the limiter in this process: where limits, region and arbiter are found. Read from well-known paths
 * and from environment variables. */
#ifndef VGPU_CONTAINER_SETTINGS_H
#define VGPU_CONTAINER_SETTINGS_H

#include "common/grammar.h"

enum origin {
    ORIGIN_NONE,        /* no limits are configured: nothing is limited */
    ORIGIN_FILE,        /* a limits file */
    ORIGIN_ENVIRONMENT, /* VGPU_MEMORY_LIMIT, VGPU_CORES_LIMIT and their policies */
};

struct settings {
    enum origin origin;
    const char *limits;      /* path of the limits file, for ORIGIN_FILE */
    const char *region;      /* path of the region's file; NULL: the process makes a region of its own */
    const char *arbiter;     /* path of the socket to the node's arbiter; NULL: none */
    struct limits_text text; /* limits as text, for ORIGIN_ENVIRONMENT */
};

/* In a container with vgpushare, where /run/vgpu/limits exists, the paths below /run/vgpu count and the environment is
 * ignored. Elsewhere VGPU_LIMITS_FILE, VGPU_REGION_FILE and VGPU_ARBITER_SOCKET count (`vgpu run` sets them); without
 * VGPU_LIMITS_FILE, the limits as text. A setuid program ignores the environment. The strings are not copied: they
 * belong to the environment. */
struct settings settings_read(void);

#endif
