#include "region/identity.h"

#include <errno.h>
#include <string.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "common/text.h"
#include "loader/libc.h"
#include "region/account.h"
#include "region/slot_locks.h"

enum liveness { UNKNOWN, ALIVE, DEAD };

struct process {
    char state;
    uint64_t threads;
    uint64_t start_time;
};

static ssize_t read_file(const char *path, char *out, size_t size) {
    int fd = system_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t length = system_read(fd, out, size - 1);
    system_close(fd);
    out[length > 0 ? length : 0] = '\0';
    return length;
}

/* The word `count` words further on; words are separated by one space. NULL where there are fewer words. */
static const char *skip(const char *text, int count) {
    for (; text && count > 0; count--) {
        text = strchr(text, ' ');
        if (text) text++;
    }
    return text;
}

/* Fields 3, 20 and 22 of /proc/<pid>/stat. Parsed from the last ')', because field 2, the command's name, may contain
 * spaces and brackets. */
static bool read_process(const char *path, struct process *out) {
    char text[1024];
    if (read_file(path, text, sizeof text) <= 0) return false;
    const char *state = strrchr(text, ')');
    if (!state || state[1] != ' ') return false;
    const char *threads = skip(state + 2, 17);
    const char *start = skip(threads, 2);
    if (!start) return false;
    *out = (struct process){state[2], text_number(threads), text_number(start)};
    return true;
}

/* Two processes without /proc may have one pid, in two pid namespaces. They must not have one identity. */
static uint64_t random_number(void) {
    uint64_t number = 0;
    return system_random(&number, sizeof number) == sizeof number ? number : clock_now();
}

struct identity identity_self(void) {
    struct identity self = {.pid = (uint32_t)system_process_id()};
    struct process process;
    struct stat namespace = {0};
    bool has_proc = read_process("/proc/self/stat", &process) && system_stat("/proc/self/ns/pid", &namespace) == 0;
    self.start_time = has_proc ? process.start_time : random_number();
    self.namespace = has_proc ? namespace.st_ino : 0;
    return self;
}

/* The kernel gives each program 16 random bytes. Some of them guard the program's stack, so only a hash is told. */
uint32_t identity_image(void) {
    uint64_t parts[2] = {0};
    const void *random = (const void *)LIBC(getauxval)(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
    if (random) memcpy(parts, random, sizeof parts);
    return (uint32_t)(hash_mix(hash_mix(1, parts[0]), parts[1]) >> 33) + 1;
}

/* Whether both processes are known to be in one pid namespace. */
static bool is_in_same_namespace(const struct identity *other, const struct identity *self) {
    return other->namespace == self->namespace && self->namespace != 0;
}

/* A process whose main thread has ended while others run shows as a zombie too, but counts more than one thread. */
static bool is_zombie(const struct process *process) {
    return (process->state == 'Z' || process->state == 'X') && process->threads <= 1;
}

/* A new pid namespace without a new mount of /proc still sees the outer one's, which has other pids. */
static bool is_proc_of(const struct identity *self) {
    char target[16] = "";
    return system_readlink("/proc/self", target, sizeof target - 1) > 0 && text_number(target) == self->pid;
}

static enum liveness liveness_by_pid(const struct identity *other, const struct identity *self) {
    if (!is_in_same_namespace(other, self)) return UNKNOWN;
    if (system_kill((int)other->pid, 0) == -ESRCH) return DEAD;
    char path[32] = "/proc/";
    struct process process;
    text_append(text_append_number(path, other->pid), "/stat");
    if (!read_process(path, &process)) return UNKNOWN;
    if (process.start_time == other->start_time && !is_zombie(&process)) return ALIVE;
    return is_proc_of(self) ? DEAD : UNKNOWN;
}

bool identity_is_dead(const struct identity *other, const struct identity *self) {
    return liveness_by_pid(other, self) == DEAD;
}

static struct identity identity_of(const struct region_slot *slot) {
    return (struct identity){__atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE), slot->start_time, slot->namespace};
}

/* Checks the owner again under the lock, because the slot may have a new owner since /proc was read. Returns the number
 * of slots cleared, or -1 where the lock cannot be had. */
static int clear_if_owned(struct region *region, int slot, const struct identity *dead, unsigned timeout_ms) {
    HELD_REGION struct region *locked = region_hold(region, timeout_ms);
    if (!locked) return -1;
    if (!account_owns(locked, slot, dead)) return 0;
    account_clear_slot(locked, slot);
    locked->header.reaped++;
    return 1;
}

/* The lock does not overrule a pid, because programs may close descriptors that they did not open. */
static bool is_dead_slot(const struct region *region, int slot, const struct identity *self) {
    struct identity other = identity_of(&region->slots[slot]);
    if (other.pid == 0 || account_owns(region, slot, self)) return false;
    enum liveness liveness = liveness_by_pid(&other, self);
    return liveness == DEAD || (liveness == UNKNOWN && account_has_lock(region, slot) && slot_locks_is_free(slot));
}

bool identity_any_dead(const struct region *region, const struct identity *self) {
    for (int slot = 0; slot < account_slots(region); slot++)
        if (is_dead_slot(region, slot, self)) return true;
    return false;
}

unsigned identity_count_living(const struct region *region, const struct identity *self) {
    unsigned living = 0;
    for (int slot = 0; slot < account_slots(region); slot++)
        if (identity_of(&region->slots[slot]).pid != 0 && !is_dead_slot(region, slot, self)) living++;
    return living;
}

/* Stops at the first timeout of the lock: waiting for a stopped holder again for each slot would add up. */
unsigned identity_reap(struct region *region, const struct identity *self, unsigned timeout_ms) {
    unsigned reaped_slots = 0;
    for (int slot = 0, cleared = 0; slot < account_slots(region) && cleared >= 0; slot++) {
        struct identity other = identity_of(&region->slots[slot]);
        if (!is_dead_slot(region, slot, self)) continue;
        cleared = clear_if_owned(region, slot, &other, timeout_ms);
        if (cleared > 0) reaped_slots++;
    }
    return reaped_slots;
}
