#include "container/limits_file.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/system_calls.h"
#include "common/text.h"

/* Interval in ticks (8 to 17 ms) of the check whether another file lies at the path: a stat() at each allocation would
 * be too slow. */
static uint64_t check_interval(void) { return clock_ticks_quarter_second() / 16; }

static const struct limits_file *map(int fd, const struct stat *status) {
    if (!S_ISREG(status->st_mode) || status->st_size < (off_t)sizeof(struct limits_file)) return NULL;
    void *file = system_map(sizeof(struct limits_file), PROT_READ, MAP_SHARED, fd);
    return file == MAP_FAILED ? NULL : file;
}

/* Maps the file at the path; `file` is NULL where there is none that is large enough. O_NONBLOCK, because opening a
 * FIFO would wait for its writer. */
static struct limits_file_watch open_path(const char *path) {
    struct limits_file_watch found = {.path = path};
    struct stat status = {0};
    int fd = system_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return found;
    if (system_fstat(fd, &status) == 0) {
        found.file = map(fd, &status);
        found.device = status.st_dev;
        found.inode = status.st_ino;
    }
    system_close(fd);
    return found;
}

static void close_file(const struct limits_file *file) {
    if (file) system_unmap((void *)file, sizeof *file);
}

bool limits_file_open(struct limits_file_watch *watch, const char *path, struct limits_slot *limits) {
    *watch = open_path(text_copy(path)); /* copied, because the path may lie in the program's environment */
    watch->due = clock_ticks() + check_interval();
    return watch->file && limits_decode(watch->file, limits);
}

/* Unmaps a file that was truncated: reading it would raise SIGBUS. */
static void unmap_if_truncated(struct limits_file_watch *watch, const struct stat *status) {
    if (!watch->file || status->st_ino != watch->inode || status->st_size >= (off_t)sizeof *watch->file) return;
    close_file(watch->file);
    watch->file = NULL;
}

static bool is_other_file(struct limits_file_watch *watch) {
    struct stat status = {0};
    if (system_stat(watch->path, &status) != 0) return false;
    unmap_if_truncated(watch, &status);
    return !watch->file || status.st_dev != watch->device || status.st_ino != watch->inode;
}

/* A new file that is not valid does not replace the mapped one. */
static bool reopen_if_replaced(struct limits_file_watch *watch, struct limits_slot *limits, uint64_t now) {
    if (!clock_is_due(watch->due, now)) return false;
    watch->due = now + check_interval();
    if (!is_other_file(watch)) return false;
    struct limits_file_watch found = open_path(watch->path);
    bool is_valid = found.file && limits_decode(found.file, limits);
    close_file(is_valid ? watch->file : found.file);
    found.due = watch->due;
    if (is_valid) *watch = found;
    return is_valid;
}

void limits_file_update(struct limits_file_watch *watch, struct limits_slot *limits, uint64_t now) {
    if (!watch->path) return;
    bool has_changed = reopen_if_replaced(watch, limits, now) || (watch->file && limits_update(watch->file, limits));
    if (has_changed) log_debug("limits: read change %llu from %s", (unsigned long long)limits->sequence, watch->path);
}
