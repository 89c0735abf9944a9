/* One file, `state`, is mapped by every process that uses the simulated GPU, in whichever container.
 *
 * The kernel tells which processes live. PIDs cannot, because they differ between PID namespaces. Each process holds
 * two locks of one byte in the file:
 * - an open file description lock on LIVE_BASE + slot. The kernel releases it when the process ends, kill -9 included.
 * - a POSIX lock on OWNER_BASE + slot, by which slot_pid finds the PID: the kernel translates the PID of the holder
 *   into the PID namespace of the process that asks. A POSIX lock is released when its process closes any descriptor
 *   of the file, so this library never closes one.
 *
 * No total is stored. A total is the sum over the slots of living processes and over shared memory, so a process that
 * is killed while it writes cannot leave a wrong total. */
#include "ledger/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/state_directory.h"

#define ALL_BYTE   0
#define LIVE_BASE  (INT64_C(1) << 32)
#define OWNER_BASE (INT64_C(1) << 33)

static const char MAGIC[8] = "simgpu8";

struct state *state;
int own_slot = -1;
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static char mapped_path[STATE_PATH_SIZE];
static int state_fd = -1;

static int lock_byte(int command, int64_t byte, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(state_fd, command, &lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

bool state_hold_process(void) {
    pthread_mutex_lock(&process_lock);
    return true;
}

void state_drop_process(const bool *held) {
    if (*held) pthread_mutex_unlock(&process_lock);
}

bool state_hold(bool is_needed) {
    if (is_needed) {
        state_hold_process();
        lock_byte(F_OFD_SETLKW, ALL_BYTE, F_WRLCK);
    }
    return is_needed;
}

void state_drop(const bool *held) {
    if (*held) lock_byte(F_OFD_SETLK, ALL_BYTE, F_UNLCK);
    state_drop_process(held);
}

static int map_open_file(void) {
    struct stat found;
    lock_byte(F_OFD_SETLKW, ALL_BYTE, F_WRLCK);
    int result = fstat(state_fd, &found);
    if (result == 0 && (size_t)found.st_size < sizeof(struct state)) result = ftruncate(state_fd, sizeof(struct state));
    state =
        result == 0 ? mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, state_fd, 0) : MAP_FAILED;
    if (state != MAP_FAILED && state->magic[0] == '\0') memcpy(state->magic, MAGIC, sizeof MAGIC);
    lock_byte(F_OFD_SETLK, ALL_BYTE, F_UNLCK);
    return state != MAP_FAILED && memcmp(state->magic, MAGIC, sizeof MAGIC) == 0 ? 0 : -EINVAL;
}

bool state_is_mapped(const char *path) { return state_fd >= 0 && (own_slot >= 0 || strcmp(path, mapped_path) == 0); }

int state_map(const char *path) {
    if (state_is_mapped(path)) return state == MAP_FAILED ? -EINVAL : 0;
    state_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (state_fd < 0) return -errno;
    (void)snprintf(mapped_path, sizeof mapped_path, "%s", path);
    fchmod(state_fd, 0666); /* containers run as any user; fails when another user made the file and did this */
    return map_open_file();
}

/* Closing a descriptor in the child releases no lock of the parent. */
void state_leave_to_parent(void) {
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    process_lock = fresh;
    own_slot = -1;
    if (state_fd >= 0) {
        close(state_fd);
        munmap(state, sizeof(struct state));
    }
    state_fd = -1;
    state = NULL;
}

int slot_claim(int slot) {
    if (lock_byte(F_OFD_SETLK, LIVE_BASE + slot, F_WRLCK) != 0) return -errno;
    lock_byte(F_SETLK, OWNER_BASE + slot, F_WRLCK);
    state->slots_used = state->slots_used > (uint32_t)slot ? state->slots_used : (uint32_t)slot + 1;
    own_slot = slot;
    return 0;
}

bool slot_is_alive(int slot) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LIVE_BASE + slot, .l_len = 1};
    return slot == own_slot || fcntl(state_fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

unsigned slot_pid(uint32_t slot) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = OWNER_BASE + slot, .l_len = 1};
    if (fcntl(state_fd, F_GETLK, &lock) != 0) return 0;
    return (unsigned)(lock.l_type == F_UNLCK ? getpid() : lock.l_pid); /* a process's own lock does not conflict */
}

int card_index(const char *uuid) {
    uint32_t cards = __atomic_load_n(&state->cards, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < cards; i++)
        if (strcmp(state->uuid[i], uuid) == 0) return (int)i;
    return -1;
}

int card_index_or_add(const char *uuid) {
    int card = card_index(uuid);
    if (card >= 0 || state->cards == LEDGER_CARDS) return card;
    card = (int)state->cards;
    (void)snprintf(state->uuid[card], UUID_SIZE, "%s", uuid);
    __atomic_store_n(&state->cards, state->cards + 1, __ATOMIC_RELEASE);
    return card;
}
