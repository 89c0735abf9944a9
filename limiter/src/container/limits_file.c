#include "container/limits_file.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/system_calls.h"
#include "common/text.h"

/* After a change was noticed the file is read at this many checks, which take longer together than a tick of the clock
 * that the kernel dates changes by: a second change within that tick has the date of the first. */
enum { READS_AFTER_CHANGE = 4 };

/* Interval in ticks (8 to 17 ms) of the check whether the file has changed: a stat() at each allocation would be too
 * slow. */
static uint64_t check_interval(void) { return clock_ticks_quarter_second() / 16; }

static bool is_same_time(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static bool is_same_file(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool is_unchanged(const struct stat *one, const struct stat *other) {
    return is_same_file(one, other) && one->st_size == other->st_size && is_same_time(&one->st_mtim, &other->st_mtim) &&
           is_same_time(&one->st_ctim, &other->st_ctim);
}

static void map(struct limits_file_watch *watch, int fd) {
    void *mapping = system_map(sizeof watch->content, PROT_NONE, MAP_SHARED, fd);
    if (mapping == MAP_FAILED) return;
    if (watch->mapping) system_unmap(watch->mapping, sizeof watch->content);
    watch->mapping = mapping;
}

/* Another file is decoded without regard to the content so far, and does not replace it where it is not valid. */
static bool decode(struct limits_file_watch *watch, int fd, const struct stat *status, struct limits_slot *limits) {
    if (watch->mapping && is_same_file(status, &watch->read)) return limits_update(&watch->content, limits);
    if (!limits_decode(&watch->content, limits)) return false;
    map(watch, fd);
    watch->read = *status;
    return true;
}

/* False where there is no file that is large enough. O_NONBLOCK, because opening a FIFO would wait for its writer. */
static bool read_limits(struct limits_file_watch *watch, struct limits_slot *limits) {
    struct stat status = {0};
    int fd = system_open(watch->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool is_regular = system_fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    bool is_whole = is_regular && system_read(fd, &watch->content, sizeof watch->content) == sizeof watch->content;
    bool is_changed = is_whole && decode(watch, fd, &status, limits);
    system_close(fd);
    return is_changed;
}

static bool read_if_changed(struct limits_file_watch *watch, struct limits_slot *limits) {
    struct stat status = {0};
    if (system_stat(watch->path, &status) != 0) return false;
    if (!is_unchanged(&status, &watch->seen)) watch->reads_left = READS_AFTER_CHANGE;
    watch->seen = status;
    if (watch->reads_left == 0) return false;
    watch->reads_left--;
    return read_limits(watch, limits);
}

bool limits_file_open(struct limits_file_watch *watch, const char *path, struct limits_slot *limits) {
    *watch = (struct limits_file_watch){.path = text_copy(path)}; /* `path` may lie in the program's environment */
    watch->due = clock_ticks() + check_interval();
    return watch->path && read_if_changed(watch, limits);
}

void limits_file_look(struct limits_file_watch *watch, struct limits_slot *limits) {
    if (watch->path && read_if_changed(watch, limits))
        log_debug("limits: read change %llu from %s", (unsigned long long)limits->sequence, watch->path);
}

void limits_file_update(struct limits_file_watch *watch, struct limits_slot *limits, uint64_t now) {
    if (!watch->path || !clock_is_due(watch->due, now)) return;
    watch->due = now + check_interval();
    limits_file_look(watch, limits);
}
