#include "container/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/environment.h"
#include "common/system_calls.h"
#include "loader/libc.h"

/* Where the device plugin mounts a container's files, and the library that /etc/ld.so.preload names. */
#define RUN     "/run/vgpu"
#define LIBRARY "/usr/local/vgpu/libvgpushare.so"

/* A limits file that exists but cannot be accessed counts too: reading it will fail, and refuse every allocation. */
static bool has_limits_file(void) {
    int error = -system_exists(RUN "/limits");
    return error != ENOENT && error != ENOTDIR;
}

/* A sandbox that hides /run still shows the library, for otherwise the loader could not have loaded it. The answer of
 * the constructor's call stays, because the process may hide both later, by a mount or by chroot(). */
static bool is_in_container(void) {
    static bool was_in_container; /* atomic */
    if (__atomic_load_n(&was_in_container, __ATOMIC_RELAXED)) return true;
    bool is_in = has_limits_file() || system_exists(LIBRARY) == 0;
    if (is_in) __atomic_store_n(&was_in_container, true, __ATOMIC_RELAXED);
    return is_in;
}

/* A program with more rights than its caller does not believe the caller's environment. */
static const char *read_variable(const char *name) {
    return LIBC(getauxval)(AT_SECURE) ? NULL : environment_find(name);
}

struct settings settings_read(void) {
    struct settings settings = {0};
    if (is_in_container())
        return (struct settings){.origin = ORIGIN_FILE,
                                 .limits = RUN "/limits",
                                 .region = RUN "/region",
                                 .arbiter = RUN "/arbiter/socket",
                                 .space = RUN "/space",
                                 .advice = ": a sandbox inside this container must show " RUN ", writable"};
    settings.region = read_variable("VGPU_REGION_FILE");
    settings.limits = read_variable("VGPU_LIMITS_FILE");
    settings.arbiter = read_variable("VGPU_ARBITER_SOCKET");
    settings.space = read_variable("VGPU_SPACE_DIRECTORY");
    settings.text = (struct limits_text){.memory = read_variable("VGPU_MEMORY_LIMIT"),
                                         .cores = read_variable("VGPU_CORES_LIMIT"),
                                         .compute_policy = read_variable("VGPU_COMPUTE_POLICY"),
                                         .memory_policy = read_variable("VGPU_MEMORY_POLICY")};
    if (settings.text.memory || settings.text.cores) settings.origin = ORIGIN_ENVIRONMENT;
    if (settings.limits) settings.origin = ORIGIN_FILE;
    return settings;
}
