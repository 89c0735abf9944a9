#include "region/slot_locks.h"

#include "common/system_calls.h"
#include "common/text.h"
#include "process/fork.h"

/* Since Linux 3.15; the headers of glibc 2.17 do not have them. */
#ifndef F_OFD_SETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

/* The descriptor gets a number that programs seldom name in dup2() or close(), where the limit of numbers allows that.
 * When a process ends, the kernel closes low numbers first: the driver's descriptors, and with them the memory. */
enum { HIGH_NUMBER = 900 };

static struct {
    char *path; /* NULL: the region has no file */
    dev_t device;
    ino_t inode;
    int descriptor; /* atomic; -1: not open */
} file = {.descriptor = -1};

static bool is_region_file(int descriptor) {
    struct stat status = {0};
    return descriptor >= 0 && system_fstat(descriptor, &status) == 0 && status.st_dev == file.device &&
           status.st_ino == file.inode;
}

static void forget(void) {
    if (is_region_file(file.descriptor)) system_close(file.descriptor);
    file.descriptor = -1;
}
FORGET_IN_CHILD(forget);

void slot_locks_use(const char *path) {
    struct stat status = {0};
    if (system_stat(path, &status) != 0) return;
    file.device = status.st_dev;
    file.inode = status.st_ino;
    file.path = text_copy(path);
}

static int open_high(void) {
    int descriptor = file.path ? system_open(file.path, O_RDWR | O_CLOEXEC) : -1;
    int high = descriptor >= 0 ? system_fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH_NUMBER) : -1;
    if (high < 0) return descriptor;
    system_close(descriptor);
    return high;
}

/* The program may have closed the descriptor, and its number may name another file since. */
static int get_descriptor(void) {
    int known = __atomic_load_n(&file.descriptor, __ATOMIC_RELAXED);
    if (is_region_file(known)) return known;
    int opened = open_high();
    bool is_stored = is_region_file(opened) && __atomic_compare_exchange_n(&file.descriptor, &known, opened, false,
                                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (is_stored) return opened;
    if (opened >= 0) system_close(opened);
    return is_region_file(known) ? known : -1; /* another thread was faster */
}

void slot_locks_open(void) { (void)get_descriptor(); }

static bool request(int slot, int command, struct flock *lock) {
    int descriptor = slot >= 0 ? get_descriptor() : -1;
    *lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    return descriptor >= 0 && system_fcntl(descriptor, command, (long)lock) == 0;
}

bool slot_locks_take(int slot) {
    struct flock lock;
    return request(slot, F_OFD_SETLK, &lock);
}

bool slot_locks_is_free(int slot) {
    struct flock lock;
    return request(slot, F_OFD_GETLK, &lock) && lock.l_type == F_UNLCK;
}
