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
    const char *limits;  /* path of the limits file, for ORIGIN_FILE */
    const char *region;  /* path of the region's file; NULL: the process makes a region of its own */
    const char *arbiter; /* path of the socket to the node's arbiter; NULL: none */
    const char *space;   /* pipe directory of the MPS daemon of the container's group, if it is in one; NULL: none */
    const char *advice;  /* end of a warning that a file cannot be used; NULL: none */
    struct limits_text text; /* limits as text, for ORIGIN_ENVIRONMENT */
};

/* In a container with vgpushare, the paths below /run/vgpu count and the environment is ignored, also where a sandbox
 * hides these paths: every allocation is then refused. Such a container is known by /run/vgpu/limits or by
 * /usr/local/vgpu/libvgpushare.so, now or at an earlier call in this process (docs/adr/0030). Elsewhere
 * VGPU_LIMITS_FILE, VGPU_REGION_FILE, VGPU_SPACE_DIRECTORY and VGPU_ARBITER_SOCKET count (`vgpu run` sets them);
 * without VGPU_LIMITS_FILE, the limits as text. A setuid program ignores the environment. The strings are not copied:
 * they belong to the environment. */
struct settings settings_read(void);

#endif
