#include "source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "settings.h"

struct source {
    bool is_limited;
    const struct limits_file *file; /* mapped; NULL: the environment's limits, or none that can be read */
    struct limits_slot limits;      /* the last good copy; empty denies */
    struct region *region;
};

static const struct limits_file *map_limits(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    struct stat status;
    void *file = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(struct limits_file))
        file = mmap(NULL, sizeof(struct limits_file), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return file == MAP_FAILED ? NULL : file;
}

static void read_limits(struct source *source, const struct settings *settings) {
    if (settings->origin == ORIGIN_FILE) source->file = map_limits(settings->limits);
    bool good = settings->origin == ORIGIN_FILE ? source->file && limits_decode(source->file, &source->limits)
                                                : limits_parse(&settings->text, &source->limits);
    if (good) return;
    source->limits.count = 0;
    log_warn("%s cannot be read: no GPU memory may be used",
             settings->origin == ORIGIN_FILE ? settings->limits : "the limits in the environment");
}

struct source *source_open(void) {
    static struct source source;
    struct settings settings = settings_read();
    source.is_limited = settings.origin != ORIGIN_NONE;
    if (!source.is_limited) return &source;
    read_limits(&source, &settings);
    source.region = settings.region ? region_open(settings.region) : region_anonymous();
    if (!source.region)
        log_warn("%s is no region: no GPU memory may be used", settings.region ? settings.region : "memory");
    return &source;
}

bool source_is_limited(const struct source *source) { return source->is_limited; }

static bool is_current(const struct source *source) {
    uint32_t active = __atomic_load_n(&source->file->active, __ATOMIC_ACQUIRE) & 1;
    return __atomic_load_n(&source->file->slots[active].sequence, __ATOMIC_ACQUIRE) == source->limits.sequence;
}

static const struct limits_slot *current(struct source *source) {
    if (source->file && !is_current(source)) limits_decode(source->file, &source->limits);
    return &source->limits;
}

struct card_limit source_limit(struct source *source, const uint8_t uuid[UUID_SIZE]) {
    return limits_of(current(source), uuid);
}

enum memory_policy source_memory_policy(struct source *source) { return current(source)->memory_policy; }

struct region *source_region(const struct source *source) { return source->region; }

struct region *source_open_region(void) {
    struct settings settings = settings_read();
    return settings.origin != ORIGIN_NONE && settings.region ? region_open(settings.region) : NULL;
}
