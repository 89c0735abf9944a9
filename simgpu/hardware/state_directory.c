#include "hardware/state_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define DEFAULT_DIRECTORY "/run/simgpu"
#define SETTLED_NS        INT64_C(50000000) /* longer than the clock tick of any file system */

void state_directory_path(char out[STATE_PATH_SIZE], const char *name) {
    const char *directory = getenv("SIMGPU_STATE");
    if (!directory || *directory == '\0') directory = DEFAULT_DIRECTORY;
    (void)snprintf(out, STATE_PATH_SIZE, "%s/%s", directory, name);
}

uint64_t file_version(const char *path, bool *is_settled) {
    struct stat found;
    struct timespec now;
    if (stat(path, &found) != 0) {
        *is_settled = true;
        return 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t changed = (int64_t)found.st_ctim.tv_sec * 1000000000 + found.st_ctim.tv_nsec;
    int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - changed;
    *is_settled = age > SETTLED_NS || age < 0;
    uint64_t version = (uint64_t)changed * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)found.st_ino << 20;
    return (version ^ (uint64_t)found.st_size) | 1;
}
