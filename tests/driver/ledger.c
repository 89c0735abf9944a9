/* The ledger: `state` is one file mapped by every process that uses the simulated driver, in whatever container.
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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL_BYTE   0
#define LIVE_BASE  (INT64_C(1) << 32)
#define OWNER_BASE (INT64_C(1) << 33)

static const char MAGIC[8] = "simgpu3";

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

static int attached(void) {
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
    int result = attached();
    if (result != 0) {
        return result;
    }
    ledger_enter();
    result = own_slot >= 0 ? 0 : take_slot();
    ledger_leave();
    return result;
}

bool ledger_forked(void) { return forked; }

/* The card's place, -1 when nobody holds anything there. */
static int place_of(const char *uuid) {
    uint32_t cards = __atomic_load_n(&state->cards, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < cards; i++) {
        if (strcmp(state->uuid[i], uuid) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Under the file's lock. */
int ledger_place(const char *uuid) {
    int place = place_of(uuid);
    if (place >= 0 || state->cards == CARDS) {
        return place;
    }
    place = (int)state->cards;
    (void)snprintf(state->uuid[place], SIM_UUID_SIZE, "%s", uuid);
    __atomic_store_n(&state->cards, state->cards + 1, __ATOMIC_RELEASE);
    return place;
}

static uint64_t slot_bytes(uint32_t slot, int place) {
    return __atomic_load_n(&state->slot[slot].bytes[place], __ATOMIC_RELAXED);
}

static uint64_t sum_of_all(int place) {
    uint64_t sum = shares_sum(place, false);
    for (uint32_t slot = 0; slot < state->high; slot++) {
        sum += slot_bytes(slot, place);
    }
    return sum;
}

/* Slots are read without the file's lock, shares under it: true when there are any, and it was taken. */
static bool enter_for_shares(void) {
    bool shared = __atomic_load_n(&state->share_high, __ATOMIC_ACQUIRE) > 0;
    if (shared) {
        ledger_enter();
    }
    return shared;
}

static void leave_if(bool entered) {
    if (entered) {
        ledger_leave();
    }
}

static uint64_t sum_of_living(int place) {
    bool entered = enter_for_shares();
    uint64_t sum = shares_sum(place, true);
    uint32_t high = __atomic_load_n(&state->high, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < high; slot++) {
        if (slot_bytes(slot, place) != 0 && ledger_alive((int)slot)) {
            sum += slot_bytes(slot, place);
        }
    }
    leave_if(entered);
    return sum;
}

/* Under the file's lock. */
static void reap(void) {
    for (uint32_t slot = 0; slot < state->high; slot++) {
        if (!ledger_alive((int)slot)) {
            state->slot[slot] = (Slot){0};
            shares_forget(slot);
        }
    }
    shares_reap();
}

bool ledger_has_room(int place, uint64_t bytes, uint64_t capacity) {
    uint64_t sum = sum_of_all(place);
    if (bytes > capacity) {
        return false;
    }
    if (sum > capacity - bytes || sum + bytes > state->peak[place]) {
        reap();
        sum = sum_of_all(place);
    }
    if (sum > capacity - bytes) {
        return false;
    }
    state->peak[place] = sum + bytes > state->peak[place] ? sum + bytes : state->peak[place];
    return true;
}

/* Under the file's lock. */
static int charge_place(int place, uint64_t bytes, uint64_t capacity) {
    if (!ledger_has_room(place, bytes, capacity)) {
        return -ENOMEM;
    }
    uint64_t *held = &state->slot[own_slot].bytes[place];
    __atomic_store_n(held, *held + bytes, __ATOMIC_RELAXED);
    return 0;
}

int ledger_charge(const char *uuid, uint64_t bytes, uint64_t capacity) {
    if (own_slot < 0) {
        return -EBADF;
    }
    ledger_enter();
    int place = ledger_place(uuid);
    int result = place < 0 ? -ENOSPC : charge_place(place, bytes, capacity);
    ledger_leave();
    return result;
}

void ledger_release(const char *uuid, uint64_t bytes) {
    if (own_slot < 0) {
        return;
    }
    ledger_enter();
    int place = place_of(uuid);
    if (place >= 0) {
        uint64_t *held = &state->slot[own_slot].bytes[place];
        __atomic_store_n(held, *held - (bytes < *held ? bytes : *held), __ATOMIC_RELAXED);
    }
    ledger_leave();
}

uint64_t ledger_used(const char *uuid) {
    if (attached() != 0) {
        return 0;
    }
    int place = place_of(uuid);
    return place < 0 ? 0 : sum_of_living(place);
}

/* 0 when this PID namespace has no name for the holder. */
static unsigned owner_of(uint32_t slot) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = OWNER_BASE + slot, .l_len = 1};
    if (fcntl(state_fd, F_GETLK, &lock) != 0) {
        return 0;
    }
    return (unsigned)(lock.l_type == F_UNLCK ? getpid() : lock.l_pid); /* one's own lock is no conflict */
}

/* False when the slot's process is not to be listed for the card. */
static bool describe(uint32_t slot, int place, SimProcess *out) {
    uint64_t busy_until = __atomic_load_n(&state->slot[slot].busy_until[place], __ATOMIC_RELAXED);
    uint64_t bytes = slot_bytes(slot, place) + shares_shown(slot, place);
    *out = (SimProcess){.bytes = bytes, .busy_until = busy_until};
    if ((bytes | busy_until) == 0 || !ledger_alive((int)slot)) {
        return false;
    }
    out->pid = owner_of(slot);
    return out->pid != 0;
}

unsigned ledger_processes(const char *uuid, SimProcess *out, unsigned capacity) {
    unsigned count = 0;
    SimProcess found;
    if (attached() != 0) {
        return 0;
    }
    bool entered = enter_for_shares();
    int place = place_of(uuid);
    for (uint32_t slot = 0; place >= 0 && slot < state->high; slot++) {
        if (!describe(slot, place, &found)) {
            continue;
        }
        if (count < capacity) {
            out[count] = found;
        }
        count++;
    }
    leave_if(entered);
    return count;
}

void ledger_busy_until(const char *uuid, uint64_t ns) {
    if (own_slot < 0) {
        return;
    }
    ledger_enter();
    int place = ledger_place(uuid);
    if (place >= 0) {
        __atomic_store_n(&state->slot[own_slot].busy_until[place], ns, __ATOMIC_RELAXED);
    }
    ledger_leave();
}

bool ledger_is_busy(const char *uuid, uint64_t now_ns) {
    int place = attached() == 0 ? place_of(uuid) : -1;
    for (uint32_t slot = 0; place >= 0 && slot < state->high; slot++) {
        uint64_t until = __atomic_load_n(&state->slot[slot].busy_until[place], __ATOMIC_RELAXED);
        if (until > now_ns && ledger_alive((int)slot)) {
            return true;
        }
    }
    return false;
}

bool ledger_count_fault(uint64_t version, unsigned line, unsigned limit) {
    if (line >= FAULT_LINES || attached() != 0) {
        return false;
    }
    ledger_enter();
    if (state->fault_version != version) {
        state->fault_version = version;
        memset(state->fault_used, 0, sizeof state->fault_used);
    }
    bool counted = state->fault_used[line] < limit;
    state->fault_used[line] += counted;
    ledger_leave();
    return counted;
}
