#include "arbiter/watermark/watermark_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/log.h"

enum { ENTRIES = 128, FILE_SIZE_MAX = 16384, FULL = 100 };

static const struct levels default_levels = {.high = 90, .low = 70};

struct entry {
    uint8_t uuid[UUID_SIZE]; /* zeros: every card without an entry of its own */
    struct levels levels;
};

struct config {
    unsigned count;
    struct entry entries[ENTRIES];
};

static struct config config;

static bool parse_name(const char *name, uint8_t uuid[UUID_SIZE]) {
    memset(uuid, 0, UUID_SIZE);
    return strcmp(name, "*") == 0 || gpu_uuid_parse(name, strlen(name), uuid);
}

static bool parse_percent(const char *text, unsigned *percent) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *percent = (unsigned)value;
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && value <= FULL;
}

static bool parse_levels(const char *high, const char *low, struct levels *levels) {
    return parse_percent(high, &levels->high) && parse_percent(low, &levels->low) && levels->low < levels->high;
}

/* Adds the entry of a line to `out`; empty lines and comments add none. False if the line is not valid or `out` is
 * full. */
static bool parse_line(const char *text, size_t length, struct config *out) {
    char copy[128], name[48], high[8], low[8], more;
    if (length >= sizeof copy || out->count == ENTRIES) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    int words = sscanf(copy, "%47s %7s %7s %c", name, high, low, &more);
    if (words < 1 || name[0] == '#') return true;
    struct entry *entry = &out->entries[out->count++];
    return words == 3 && parse_name(name, entry->uuid) && parse_levels(high, low, &entry->levels);
}

bool watermark_config_parse(const char *text, unsigned *line) {
    static struct config parsed;
    parsed.count = 0;
    for (*line = 1; *text; (*line)++) {
        size_t length = strcspn(text, "\n");
        if (!parse_line(text, length, &parsed)) return false;
        text += length + (text[length] == '\n');
    }
    config = parsed;
    return true;
}

static bool read_text(int fd, const char *path) {
    static char text[FILE_SIZE_MAX];
    unsigned line = 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    if (length < 0)
        log_warn("%s: cannot be read, so the previous watermarks apply: %s", path, strerror(errno));
    else if (!watermark_config_parse(text, &line))
        log_warn(
            "%s: line %u is not `GPU-uuid HIGH LOW` (percent, LOW below HIGH); the file is ignored, and the previous "
            "watermarks apply",
            path, line);
    else
        return true;
    return false;
}

static bool is_changed(const struct stat *status) {
    static struct stat last;
    bool is_unchanged = last.st_ino == status->st_ino && last.st_mtim.tv_sec == status->st_mtim.tv_sec &&
                        last.st_mtim.tv_nsec == status->st_mtim.tv_nsec && last.st_size == status->st_size;
    last = *status;
    return !is_unchanged;
}

bool watermark_config_read(const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool is_reread = fstat(fd, &status) == 0 && is_changed(&status) && read_text(fd, path);
    close(fd);
    return is_reread;
}

struct levels watermark_config_levels(const uint8_t uuid[UUID_SIZE]) {
    static const uint8_t every_card[UUID_SIZE];
    struct levels levels = default_levels;
    for (unsigned i = 0; i < config.count; i++) {
        if (memcmp(config.entries[i].uuid, uuid, UUID_SIZE) == 0) return config.entries[i].levels;
        if (memcmp(config.entries[i].uuid, every_card, UUID_SIZE) == 0) levels = config.entries[i].levels;
    }
    return levels;
}
