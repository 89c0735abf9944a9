/* A descriptor of shared memory is an open file of `shares`: its offset is the id, and it has an open file description
 * lock on the byte at the id. That lock belongs to the open file and not to a process: the kernel releases it when the
 * last copy of the descriptor is closed, wherever copies were sent. */
#include "ledger/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/state_directory.h"
#include "ledger/state.h"

static unsigned own_holds[ATTRIBUTIONS][SHARED_ENTRIES]; /* of this process; the file has one bit for all of them */
static int descriptors_fd = -1;                          /* for queries of locks */

static int open_file(void) {
    char path[STATE_PATH_SIZE];
    state_directory_path(path, "shares");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) fchmod(fd, 0666); /* containers run as any user */
    return fd;
}

static int lock_byte(int fd, int command, uint64_t id, struct flock *lock) {
    *lock = (struct flock){
        .l_type = command == F_OFD_GETLK ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)id, .l_len = 1};
    return fcntl(fd, command, lock);
}

static bool is_open(uint64_t id) {
    struct flock lock;
    descriptors_fd = descriptors_fd < 0 ? open_file() : descriptors_fd;
    return lock_byte(descriptors_fd, F_OFD_GETLK, id, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool has_descriptor(const struct shared_entry *entry) {
    return is_open(entry->id) || (entry->parent_id != 0 && is_open(entry->parent_id));
}

static bool has_slot(const uint64_t *slots, uint32_t slot) { return (slots[slot / 64] >> slot % 64 & 1) != 0; }

static void set_slot(uint64_t *slots, uint32_t slot, bool value) {
    uint64_t bit = UINT64_C(1) << slot % 64;
    slots[slot / 64] = value ? slots[slot / 64] | bit : slots[slot / 64] & ~bit;
}

/* Writes what own_holds says of the entry into the file. */
static void publish_own_holds(struct shared_entry *entry) {
    uint64_t index = (uint64_t)(entry - state->shared);
    uint32_t slot = (uint32_t)own_slot;
    unsigned attributed = own_holds[ATTRIBUTED][index];
    unsigned when_closed = own_holds[ATTRIBUTED_WHEN_CLOSED][index];
    set_slot(entry->attributed, slot, attributed > 0);
    set_slot(entry->attributed_when_closed, slot, when_closed > 0);
    set_slot(entry->holders, slot, attributed + when_closed + own_holds[UNATTRIBUTED][index] > 0);
}

/* The lowest of these slots whose process lives; -1 when there is none. */
static int64_t first_living(const uint64_t *slots) {
    for (uint32_t slot = 0; slot < state->slots_used; slot++)
        if (has_slot(slots, slot) && slot_is_alive((int)slot)) return slot;
    return -1;
}

/* The slot of the process that NVML counts the memory with; -1 when there is none. */
static int64_t attributed_slot(const struct shared_entry *entry) {
    uint32_t exporter = entry->exporter;
    bool by_exporter = exporter < SLOTS && has_slot(entry->attributed, exporter) && slot_is_alive((int)exporter);
    int64_t first = by_exporter ? exporter : first_living(entry->attributed);
    return first >= 0 || has_descriptor(entry) ? first : first_living(entry->attributed_when_closed);
}

static bool is_held(const struct shared_entry *entry) {
    return first_living(entry->holders) >= 0 || has_descriptor(entry);
}

uint64_t shared_memory_sum(int card, bool held_only) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < state->shared_used; i++) {
        const struct shared_entry *entry = &state->shared[i];
        if (entry->id != 0 && entry->card == (uint32_t)card && (!held_only || is_held(entry))) sum += entry->bytes;
    }
    return sum;
}

uint64_t shared_memory_attributed(uint32_t slot, int card) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < state->shared_used; i++) {
        const struct shared_entry *entry = &state->shared[i];
        bool holds = entry->id != 0 && entry->card == (uint32_t)card && has_slot(entry->holders, slot);
        if (holds && attributed_slot(entry) == slot) sum += entry->bytes;
    }
    return sum;
}

void shared_memory_forget(uint32_t slot) {
    for (uint64_t i = 0; i < state->shared_used; i++) {
        struct shared_entry *entry = &state->shared[i];
        entry->exporter = entry->exporter == slot ? SLOTS : entry->exporter;
        set_slot(entry->holders, slot, false);
        set_slot(entry->attributed, slot, false);
        set_slot(entry->attributed_when_closed, slot, false);
    }
}

void shared_memory_reap(void) {
    for (uint64_t i = 0; i < state->shared_used; i++)
        if (state->shared[i].id != 0 && !is_held(&state->shared[i])) state->shared[i].id = 0;
}

void shared_memory_reset(void) {
    memset(own_holds, 0, sizeof own_holds);
    if (descriptors_fd >= 0) close(descriptors_fd);
    descriptors_fd = -1;
}

/* NULL when the memory is freed. */
static struct shared_entry *find(uint64_t id) {
    struct shared_entry *entry = &state->shared[id % SHARED_ENTRIES];
    return id != 0 && entry->id == id ? entry : NULL;
}

static struct shared_entry *free_entry(void) {
    for (uint64_t i = 0; i < SHARED_ENTRIES; i++) {
        if (state->shared[i].id == 0) {
            state->shared_used = state->shared_used > i ? state->shared_used : i + 1;
            return &state->shared[i];
        }
    }
    return NULL;
}

/* The bytes leave the slot before the entry gets its id. If the process is killed in between, they are counted nowhere,
 * which is correct, because only that process held them. */
static uint64_t create(int card, uint64_t bytes, uint64_t parent_id) {
    shared_memory_reap();
    struct shared_entry *entry = card < 0 ? NULL : free_entry();
    if (!entry) return 0;
    uint64_t index = (uint64_t)(entry - state->shared);
    state->shared_ids += SHARED_ENTRIES;
    state->slot[own_slot].bytes[card] -= bytes;
    *entry = (struct shared_entry){
        .bytes = bytes, .card = (uint32_t)card, .exporter = (uint32_t)own_slot, .parent_id = parent_id};
    for (int attribution = 0; attribution < ATTRIBUTIONS; attribution++)
        own_holds[attribution][index] = attribution == ATTRIBUTED;
    publish_own_holds(entry);
    entry->id = state->shared_ids + index;
    return entry->id;
}

uint64_t shared_memory_create(const char *uuid, uint64_t bytes, uint64_t parent_id) {
    HOLD_STATE();
    return create(card_index_or_add(uuid), bytes, parent_id);
}

void shared_memory_shrink(uint64_t id, uint64_t bytes) {
    HOLD_STATE();
    struct shared_entry *entry = find(id);
    if (entry && bytes < entry->bytes) entry->bytes = bytes;
}

bool shared_memory_hold(uint64_t id, enum attribution attribution, struct shared_memory *out) {
    HOLD_STATE();
    struct shared_entry *entry = find(id);
    bool held = entry && is_held(entry);
    if (held) {
        own_holds[attribution][id % SHARED_ENTRIES]++;
        publish_own_holds(entry);
        *out = (struct shared_memory){.id = id, .bytes = entry->bytes};
        memcpy(out->uuid, state->uuid[entry->card], sizeof out->uuid);
    }
    return held;
}

void shared_memory_drop(uint64_t id, enum attribution attribution) {
    HOLD_STATE();
    struct shared_entry *entry = find(id);
    if (entry) {
        own_holds[attribution][id % SHARED_ENTRIES]--;
        publish_own_holds(entry);
        shared_memory_reap();
    }
}

bool shared_memory_is_own(uint64_t id) {
    HOLD_STATE();
    const struct shared_entry *entry = find(id);
    return entry && entry->exporter == (uint32_t)own_slot;
}

int shared_memory_open_descriptor(uint64_t id) {
    struct flock lock;
    int fd = open_file();
    if (fd < 0) return -errno;
    if (lseek(fd, (off_t)id, SEEK_SET) < 0 || lock_byte(fd, F_OFD_SETLK, id, &lock) != 0) {
        close(fd);
        return -EIO;
    }
    return fd;
}

uint64_t shared_memory_of_descriptor(int fd) {
    struct stat given;
    struct stat own;
    char path[STATE_PATH_SIZE];
    state_directory_path(path, "shares");
    if (fstat(fd, &given) != 0 || stat(path, &own) != 0 || given.st_ino != own.st_ino || given.st_dev != own.st_dev)
        return 0;
    off_t id = lseek(fd, 0, SEEK_CUR);
    return id > 0 ? (uint64_t)id : 0;
}
