/* Where this process's limits come from. Reads the file system's names and the environment. */
#ifndef VGPU_CONTAINER_SETTINGS_H
#define VGPU_CONTAINER_SETTINGS_H

#include "common/grammar.h"

enum origin {
    ORIGIN_NONE,        /* nobody set a limit: everything passes */
    ORIGIN_FILE,        /* a limits file */
    ORIGIN_ENVIRONMENT, /* VGPU_MEMORY_LIMIT and its kin */
};

struct settings {
    enum origin origin;
    const char *limits;      /* path of the limits file */
    const char *region;      /* path of the region; NULL: one of the process's own */
    const char *arbiter;     /* path of the socket to the node's arbiter; NULL: there is none */
    struct limits_text text; /* of the environment */
};

/* Inside a container of ours /run/vgpu/limits decides and the environment is not looked at. Elsewhere VGPU_LIMITS_FILE,
 * VGPU_REGION_FILE and VGPU_ARBITER_SOCKET (set by `vgpu run`), then the limits as text. A setuid program sees no
 * environment. */
struct settings settings_read(void);

#endif
