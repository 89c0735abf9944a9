/* The ledger's file: `state` is one file mapped by every process that uses the simulated driver, in whatever container.
 *
 * Who is alive is told by the kernel, not by PIDs, which mean nothing across PID namespaces: a process holds an open
 * file description lock on the byte LIVE_BASE + slot, and it is gone the moment the process is, kill -9 included.
 * A second, POSIX lock on OWNER_BASE + slot carries no liveness; the kernel translates the PID of its holder into the
 * PID namespace of whoever asks, which is how NVML names processes. The POSIX lock is dropped when any descriptor of
 * this file is closed by its process, so neither library ever closes it.
 *
 * A total is never stored: it is the sum over the slots of the living and over what they share, so a writer's death can
 * leave nothing wrong. */
#define _GNU_SOURCE
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL_BYTE   0
#define LIVE_BASE  (INT64_C(1) << 32)
#define OWNER_BASE (INT64_C(1) << 33)

static const char MAGIC[8] = "simgpu5";

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER; /* outer; the file's lock is taken inside it */
State *state;
int own_slot = -1;
static char state_path[SIM_PATH_SIZE];
static int state_fd = -1;
static bool forked;

static int lock_byte(int command, int64_t byte, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(state_fd, command, &lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

void ledger_enter(void) {
    (void)pthread_mutex_lock(&ledger_lock);
    (void)lock_byte(F_OFD_SETLKW, ALL_BYTE, F_WRLCK);
}

void ledger_leave(void) {
    (void)lock_byte(F_OFD_SETLK, ALL_BYTE, F_UNLCK);
    (void)pthread_mutex_unlock(&ledger_lock);
}

/* The child has no context and no slot; closing here leaves the parent's locks as they are. */
static void after_fork_in_child(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    ledger_lock = fresh;
    forked = forked || own_slot >= 0;
    own_slot = -1;
    shares_start_anew();
    if (state_fd >= 0) {
        (void)close(state_fd);
        (void)munmap(state, sizeof(State));
    }
    state_fd = -1;
    state = NULL;
}

static int map_state(int fd) {
    struct stat found;
    (void)lock_byte(F_OFD_SETLKW, ALL_BYTE, F_WRLCK);
    int result = fstat(fd, &found);
    if (result == 0 && (size_t)found.st_size < sizeof(State)) {
        result = ftruncate(fd, sizeof(State));
    }
    state = result == 0 ? mmap(NULL, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (state != MAP_FAILED && state->magic[0] == '\0') {
        memcpy(state->magic, MAGIC, sizeof MAGIC);
    }
    (void)lock_byte(F_OFD_SETLK, ALL_BYTE, F_UNLCK);
    return state != MAP_FAILED && memcmp(state->magic, MAGIC, sizeof MAGIC) == 0 ? 0 : -EINVAL;
}

/* Under ledger_lock. A reader follows SIMGPU_STATE when it changes, as tests in one process do; whoever holds memory
 * stays where it is. Nothing is closed again, for the sake of the POSIX lock. */
static int attach(void) {
    static bool prepared;
    char path[SIM_PATH_SIZE];
    sim_path(path, "state");
    if (state_fd >= 0 && (own_slot >= 0 || strcmp(path, state_path) == 0)) {
        return state == MAP_FAILED ? -EINVAL : 0;
    }
    state_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (state_fd < 0) {
        return -errno;
    }
    memcpy(state_path, path, sizeof path);
    shares_start_anew();
    (void)fchmod(state_fd, 0666); /* containers run as any user; fails when it is another's, who did it */
    if (!prepared) {
        prepared = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
    }
    return map_state(state_fd);
}

int ledger_attached(void) {
    (void)pthread_mutex_lock(&ledger_lock);
    int result = attach();
    (void)pthread_mutex_unlock(&ledger_lock);
    return result;
}

bool ledger_alive(int slot) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LIVE_BASE + slot, .l_len = 1};
    return slot == own_slot || fcntl(state_fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Under the file's lock. Cleared before it is locked, so that a reader without the lock never counts the dead. */
static int take_slot(void) {
    for (int slot = 0; slot < SLOTS; slot++) {
        if (ledger_alive(slot)) {
            continue;
        }
        state->slot[slot] = (Slot){0};
        shares_forget((uint32_t)slot);
        time_forget((uint32_t)slot);
        if (lock_byte(F_OFD_SETLK, LIVE_BASE + slot, F_WRLCK) != 0) {
            return -errno;
        }
        (void)lock_byte(F_SETLK, OWNER_BASE + slot, F_WRLCK);
        state->high = state->high > (uint32_t)slot ? state->high : (uint32_t)slot + 1;
        own_slot = slot;
        return 0;
    }
    return -ENOSPC;
}

int ledger_join(void) {
    int result = ledger_attached();
    if (result != 0) {
        return result;
    }
    ledger_enter();
    result = own_slot >= 0 ? 0 : take_slot();
    ledger_leave();
    return result;
}

bool ledger_forked(void) { return forked; }

unsigned ledger_owner(uint32_t slot) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = OWNER_BASE + slot, .l_len = 1};
    if (fcntl(state_fd, F_GETLK, &lock) != 0) {
        return 0;
    }
    return (unsigned)(lock.l_type == F_UNLCK ? getpid() : lock.l_pid); /* one's own lock is no conflict */
}
