#include "container/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Where the device plugin mounts a container's files. */
#ifndef VGPU_RUN
#define VGPU_RUN "/run/vgpu"
#endif

/* A limits file that exists but cannot be accessed counts too: reading it will fail, and refuse every allocation. */
static bool is_in_container(void) {
    return access(VGPU_RUN "/limits", F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

struct settings settings_read(void) {
    struct settings settings = {0};
    if (is_in_container())
        return (struct settings){.origin = ORIGIN_FILE,
                                 .limits = VGPU_RUN "/limits",
                                 .region = VGPU_RUN "/region",
                                 .arbiter = VGPU_RUN "/arbiter/socket"};
    settings.region = secure_getenv("VGPU_REGION_FILE");
    settings.limits = secure_getenv("VGPU_LIMITS_FILE");
    settings.arbiter = secure_getenv("VGPU_ARBITER_SOCKET");
    settings.text = (struct limits_text){.memory = secure_getenv("VGPU_MEMORY_LIMIT"),
                                         .cores = secure_getenv("VGPU_CORES_LIMIT"),
                                         .compute_policy = secure_getenv("VGPU_COMPUTE_POLICY"),
                                         .memory_policy = secure_getenv("VGPU_MEMORY_POLICY")};
    if (settings.text.memory || settings.text.cores) settings.origin = ORIGIN_ENVIRONMENT;
    if (settings.limits) settings.origin = ORIGIN_FILE;
    return settings;
}
