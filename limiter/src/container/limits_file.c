#include "container/limits_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

/* How often it is looked whether another file stands there, in ticks: every 10 ms or so. */
static uint64_t look_every(void) { return clock_ticks_quarter_second() / 16; }

static const struct limits_file *map(int fd, const struct stat *status) {
    if (status->st_size < (off_t)sizeof(struct limits_file)) return NULL;
    void *file = mmap(NULL, sizeof(struct limits_file), PROT_READ, MAP_SHARED, fd, 0);
    return file == MAP_FAILED ? NULL : file;
}

/* What stands at the path, mapped; `file` is NULL where there is nothing of a limits file's size. */
static struct limits_file_watch open_path(const char *path) {
    struct limits_file_watch found = {.path = path};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return found;
    if (fstat(fd, &status) == 0) {
        found.file = map(fd, &status);
        found.device = status.st_dev;
        found.inode = status.st_ino;
    }
    close(fd);
    return found;
}

static void close_file(const struct limits_file *file) {
    if (file) munmap((void *)file, sizeof *file);
}

bool limits_file_open(struct limits_file_watch *watched, const char *path, struct limits_slot *limits) {
    *watched = open_path(strdup(path)); /* the program may change its environment */
    watched->due = clock_ticks() + look_every();
    return watched->file && limits_decode(watched->file, limits);
}

/* A file that was cut off is let go before it is read again. */
static void drop_if_cut(struct limits_file_watch *watched, const struct stat *status) {
    if (!watched->file || status->st_ino != watched->inode || status->st_size >= (off_t)sizeof *watched->file) return;
    close_file(watched->file);
    watched->file = NULL;
}

static bool is_another(struct limits_file_watch *watched) {
    struct stat status;
    if (stat(watched->path, &status) != 0) return false;
    drop_if_cut(watched, &status);
    return !watched->file || status.st_dev != watched->device || status.st_ino != watched->inode;
}

/* One that cannot be read does not take the former one's place. */
static bool is_replaced(struct limits_file_watch *watched, struct limits_slot *limits, uint64_t now) {
    if (!clock_is_due(watched->due, now)) return false;
    watched->due = now + look_every();
    if (!is_another(watched)) return false;
    struct limits_file_watch found = open_path(watched->path);
    bool is_good = found.file && limits_decode(found.file, limits);
    close_file(is_good ? watched->file : found.file);
    found.due = watched->due;
    if (is_good) *watched = found;
    return is_good;
}

void limits_file_update(struct limits_file_watch *watched, struct limits_slot *limits, uint64_t now) {
    if (!watched->path) return;
    bool is_new = is_replaced(watched, limits, now) || (watched->file && limits_follow(watched->file, limits));
    if (is_new) log_debug("limits: change %llu of %s", (unsigned long long)limits->sequence, watched->path);
}
