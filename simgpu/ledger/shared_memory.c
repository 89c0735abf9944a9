/* Shared memory in the ledger: it lives while any process holds it, or while a descriptor of it is open anywhere.
 *
 * A descriptor is one of the file `shares`, at the share's number and with a lock on that byte. The lock belongs to the
 * open file, not to a process: it goes with the last copy of the descriptor, wherever that was sent. */
#define _GNU_SOURCE
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned own_holds[SIGHTS][SHARES]; /* of this process, several of which are one in the file */
static int shares_fd = -1;                 /* to ask about locks by */

static int open_shares(void) {
    char path[SIM_PATH_SIZE];
    sim_path(path, "shares");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)fchmod(fd, 0666); /* as with the ledger's own file */
    }
    return fd;
}

static int lock_number(int fd, int command, uint64_t id, struct flock *lock) {
    *lock = (struct flock){
        .l_type = command == F_OFD_GETLK ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)id, .l_len = 1};
    return fcntl(fd, command, lock);
}

static bool is_open(uint64_t id) {
    struct flock lock;
    shares_fd = shares_fd < 0 ? open_shares() : shares_fd;
    return lock_number(shares_fd, F_OFD_GETLK, id, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool has_descriptor(const Share *share) {
    return is_open(share->id) || (share->within != 0 && is_open(share->within));
}

static bool has(const uint64_t *slots, uint32_t slot) { return (slots[slot / 64] >> slot % 64 & 1) != 0; }

static void set(uint64_t *slots, uint32_t slot, bool holder) {
    uint64_t bit = UINT64_C(1) << slot % 64;
    slots[slot / 64] = holder ? slots[slot / 64] | bit : slots[slot / 64] & ~bit;
}

/* As this process counts its holds. */
static void tell_own(Share *share) {
    uint64_t index = (uint64_t)(share - state->share);
    uint32_t slot = (uint32_t)own_slot;
    unsigned seen = own_holds[SEEN][index];
    unsigned imported = own_holds[SEEN_ALONE][index];
    set(share->seen, slot, seen > 0);
    set(share->imported, slot, imported > 0);
    set(share->holders, slot, seen + imported + own_holds[UNSEEN][index] > 0);
}

/* The first living one, -1 when there is none. */
static int64_t first_of(const uint64_t *slots) {
    for (uint32_t slot = 0; slot < state->high; slot++) {
        if (has(slots, slot) && ledger_alive((int)slot)) {
            return slot;
        }
    }
    return -1;
}

/* The process shown with it: its maker, else the first; -1 when nobody living is seen to hold it. */
static int64_t shown_with(const Share *share) {
    uint32_t maker = share->exporter;
    bool made = maker < SLOTS && has(share->seen, maker) && ledger_alive((int)maker);
    int64_t first = made ? maker : first_of(share->seen);
    return first >= 0 || has_descriptor(share) ? first : first_of(share->imported);
}

static bool lives(const Share *share) { return first_of(share->holders) >= 0 || has_descriptor(share); }

uint64_t shares_sum(int place, bool living) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < state->share_high; i++) {
        const Share *share = &state->share[i];
        if (share->id != 0 && share->place == (uint32_t)place && (!living || lives(share))) {
            sum += share->bytes;
        }
    }
    return sum;
}

uint64_t shares_shown(uint32_t slot, int place) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < state->share_high; i++) {
        const Share *share = &state->share[i];
        bool here = share->id != 0 && share->place == (uint32_t)place && has(share->holders, slot);
        if (here && shown_with(share) == slot) {
            sum += share->bytes;
        }
    }
    return sum;
}

void shares_forget(uint32_t slot) {
    for (uint64_t i = 0; i < state->share_high; i++) {
        Share *share = &state->share[i];
        share->exporter = share->exporter == slot ? SLOTS : share->exporter;
        set(share->holders, slot, false);
        set(share->seen, slot, false);
        set(share->imported, slot, false);
    }
}

void shares_reap(void) {
    for (uint64_t i = 0; i < state->share_high; i++) {
        if (state->share[i].id != 0 && !lives(&state->share[i])) {
            state->share[i].id = 0;
        }
    }
}

void shares_start_anew(void) {
    memset(own_holds, 0, sizeof own_holds);
    if (shares_fd >= 0) {
        (void)close(shares_fd);
    }
    shares_fd = -1;
}

/* The entry of that number, NULL when the share is gone. */
static Share *find(uint64_t id) {
    Share *share = &state->share[id % SHARES];
    return id != 0 && share->id == id ? share : NULL;
}

static Share *free_entry(void) {
    for (uint64_t i = 0; i < SHARES; i++) {
        if (state->share[i].id == 0) {
            state->share_high = state->share_high > i ? state->share_high : i + 1;
            return &state->share[i];
        }
    }
    return NULL;
}

/* Out of the slot first: should the process die in between, the memory was its own alone. */
static uint64_t make(int place, uint64_t bytes, uint64_t within) {
    shares_reap();
    Share *share = place < 0 ? NULL : free_entry();
    if (share == NULL) {
        return 0;
    }
    uint64_t index = (uint64_t)(share - state->share);
    state->share_ids += SHARES;
    state->slot[own_slot].bytes[place] -= bytes;
    *share = (Share){.bytes = bytes, .place = (uint32_t)place, .exporter = (uint32_t)own_slot, .within = within};
    for (int sight = 0; sight < SIGHTS; sight++) {
        own_holds[sight][index] = sight == SEEN;
    }
    tell_own(share);
    share->id = state->share_ids + index;
    return share->id;
}

uint64_t ledger_share(const char *uuid, uint64_t bytes, uint64_t within) {
    ledger_enter();
    uint64_t id = make(ledger_place(uuid), bytes, within);
    ledger_leave();
    return id;
}

void ledger_share_shrink(uint64_t id, uint64_t bytes) {
    ledger_enter();
    Share *share = find(id);
    if (share != NULL && bytes < share->bytes) {
        share->bytes = bytes;
    }
    ledger_leave();
}

bool ledger_share_hold(uint64_t id, SimSight sight, SimShare *out) {
    ledger_enter();
    Share *share = find(id);
    bool living = share != NULL && lives(share);
    if (living) {
        own_holds[sight][id % SHARES]++;
        tell_own(share);
        *out = (SimShare){.id = id, .bytes = share->bytes};
        memcpy(out->uuid, state->uuid[share->place], sizeof out->uuid);
    }
    ledger_leave();
    return living;
}

bool ledger_share_is_own(uint64_t id) {
    ledger_enter();
    const Share *share = find(id);
    bool own = share != NULL && share->exporter == (uint32_t)own_slot;
    ledger_leave();
    return own;
}

void ledger_share_drop(uint64_t id, SimSight sight) {
    ledger_enter();
    Share *share = find(id);
    if (share != NULL) {
        own_holds[sight][id % SHARES]--;
        tell_own(share);
        shares_reap();
    }
    ledger_leave();
}

int ledger_share_descriptor(uint64_t id) {
    struct flock lock;
    int fd = open_shares();
    if (fd < 0) {
        return -errno;
    }
    if (lseek(fd, (off_t)id, SEEK_SET) < 0 || lock_number(fd, F_OFD_SETLK, id, &lock) != 0) {
        (void)close(fd);
        return -EIO;
    }
    return fd;
}

uint64_t ledger_share_of_descriptor(int fd) {
    struct stat given;
    struct stat ours;
    char path[SIM_PATH_SIZE];
    sim_path(path, "shares");
    if (fstat(fd, &given) != 0 || stat(path, &ours) != 0 || given.st_ino != ours.st_ino ||
        given.st_dev != ours.st_dev) {
        return 0;
    }
    off_t id = lseek(fd, 0, SEEK_CUR);
    return id > 0 ? (uint64_t)id : 0;
}
