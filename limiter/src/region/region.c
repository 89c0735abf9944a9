#include "region/region.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "loader/libc.h"
#include "process/lock.h"
#include "region/account.h"

/* Timeout in ms for a holder of the lock that has exceeded a timeout before. */
enum { KNOWN_STUCK_TIMEOUT_MS = 1 };

/* How a thread waits for the lock: it tries SPINS times at once, then sleeps between tries, 10 us at first, doubled up
 * to 160 us. */
enum { SPINS = 100, POLL_DOUBLINGS = 4 };
#define POLL_MIN_NS (10 * NS_PER_US)

static bool is_region(const struct region_header *header) {
    return memcmp(header->magic, REGION_MAGIC, sizeof header->magic) == 0 && header->version == REGION_VERSION &&
           header->size == sizeof(struct region) && header->slot_count == REGION_SLOTS &&
           header->card_count == REGION_CARDS;
}

static void init_mutex(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    LIBC(pthread_mutexattr_init)(&attributes);
    LIBC(pthread_mutexattr_setpshared)(&attributes, PTHREAD_PROCESS_SHARED);
    LIBC(pthread_mutexattr_setrobust)(&attributes, PTHREAD_MUTEX_ROBUST);
    LIBC(pthread_mutex_init)(mutex, &attributes);
    LIBC(pthread_mutexattr_destroy)(&attributes);
}

static void init_lock(struct region_header *header) {
    init_mutex(&header->lock.mutex);
    __atomic_store_n(&header->lock_ready, 1, __ATOMIC_RELEASE);
}

static bool is_lock_ready(const struct region_header *header) {
    return __atomic_load_n(&header->lock_ready, __ATOMIC_ACQUIRE) != 0;
}

/* Initialises the lock if no process has done so. If a process dies in here, the kernel drops its flock and the next
 * process starts anew; a process that is stopped in here is waited for 100 ms. */
static bool ensure_lock(struct region_header *header, int fd) {
    for (int tries = 0; tries < 100 && !is_lock_ready(header); tries++) {
        if (system_flock(fd, LOCK_EX | LOCK_NB) != 0) {
            system_sleep(NS_PER_MS);
            continue;
        }
        if (!is_lock_ready(header)) init_lock(header);
        system_flock(fd, LOCK_UN);
    }
    return is_lock_ready(header);
}

static struct region *map_file(int fd) {
    struct stat status = {0};
    if (system_fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(struct region)) return NULL;
    struct region *region = system_map(sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (region == MAP_FAILED) return NULL;
    if (is_region(&region->header) && ensure_lock(&region->header, fd)) return region;
    region_close(region);
    return NULL;
}

struct region *region_open(const char *path) {
    int fd = system_open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    struct region *region = map_file(fd);
    system_close(fd);
    return region;
}

struct region *region_anonymous(void) {
    struct region *region = system_map(sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (region == MAP_FAILED) return NULL;
    memcpy(region->header.magic, REGION_MAGIC, sizeof region->header.magic);
    region->header.version = REGION_VERSION;
    region->header.size = sizeof *region;
    region->header.slot_count = REGION_SLOTS;
    region->header.card_count = REGION_CARDS;
    init_lock(&region->header);
    return region;
}

void region_close(struct region *region) { system_unmap(region, sizeof *region); }

/* Thread id of the lock's holder, 0 = free: the futex word of a robust mutex, whose format the kernel defines. */
static unsigned holder(const struct region_header *header) {
    return (unsigned)__atomic_load_n(&header->lock.mutex.__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
}

/* The kind that glibc stores in a mutex with the attributes of init_mutex. */
static int expected_kind(void) {
    static int kind; /* relaxed atomic; 0 = not determined yet */
    int found = __atomic_load_n(&kind, __ATOMIC_RELAXED);
    if (found) return found;
    pthread_mutex_t mutex;
    init_mutex(&mutex);
    found = mutex.__data.__kind;
    __atomic_store_n(&kind, found, __ATOMIC_RELAXED);
    LIBC(pthread_mutex_destroy)(&mutex);
    return found;
}

/* A mutex of another kind was overwritten by a process of the container. It is not touched, because glibc may do
 * anything with it, such as abort (docs/adr/0017). */
static bool is_mutex_intact(const struct region_header *header) {
    return __atomic_load_n(&header->lock.mutex.__data.__kind, __ATOMIC_RELAXED) == expected_kind();
}

/* A holder that runs releases the lock within microseconds; one that was preempted needs longer. */
static void pause_before_try(unsigned tries) {
    if (tries >= SPINS) system_sleep(POLL_MIN_NS << min_u64(tries - SPINS, POLL_DOUBLINGS));
}

/* pthread_mutex_timedlock() is not used: it waits by the wall clock, so that setting the clock back would make it wait
 * for as long. */
static int poll_mutex(pthread_mutex_t *mutex, unsigned timeout_ms) {
    uint64_t until = clock_now() + timeout_ms * NS_PER_MS;
    int error;
    for (unsigned tries = 0; (error = LIBC(pthread_mutex_trylock)(mutex)) == EBUSY; tries++) {
        if (clock_now() > until) return ETIMEDOUT;
        pause_before_try(tries);
    }
    return error;
}

/* One CUDA call takes the lock several times. A holder that exceeded the timeout is probably stopped, so further
 * attempts wait for that holder only KNOWN_STUCK_TIMEOUT_MS. If it runs again, that is long enough: the lock is held
 * for arithmetic only. */
static int lock_within(struct region_header *header, unsigned timeout_ms) {
    static unsigned stuck_holder; /* atomic: thread id of the holder that exceeded the timeout, 0 = none */
    if (!is_mutex_intact(header)) return EINVAL;
    int error = LIBC(pthread_mutex_trylock)(&header->lock.mutex);
    if (error != EBUSY) return error;
    unsigned present_holder = holder(header);
    bool is_known_stuck = present_holder != 0 && present_holder == __atomic_load_n(&stuck_holder, __ATOMIC_RELAXED);
    if (is_known_stuck && timeout_ms > KNOWN_STUCK_TIMEOUT_MS) timeout_ms = KNOWN_STUCK_TIMEOUT_MS;
    error = poll_mutex(&header->lock.mutex, timeout_ms);
    __atomic_store_n(&stuck_holder, error == ETIMEDOUT ? present_holder : 0, __ATOMIC_RELAXED);
    return error;
}

int region_lock(struct region *region, unsigned timeout_ms) {
    lock_note_taken(LOCK_REGION);
    int error = lock_within(&region->header, timeout_ms);
    if (error != 0 && error != EOWNERDEAD) lock_note_released(LOCK_REGION);
    if (error == EOWNERDEAD) {
        account_recompute(region);
        region->header.recoveries++;
        return -LIBC(pthread_mutex_consistent)(&region->header.lock.mutex);
    }
    if (error == ETIMEDOUT) __atomic_fetch_add(&region->header.timeouts, 1, __ATOMIC_RELAXED);
    return -error;
}

void region_unlock(struct region *region) {
    LIBC(pthread_mutex_unlock)(&region->header.lock.mutex);
    lock_note_released(LOCK_REGION);
}
