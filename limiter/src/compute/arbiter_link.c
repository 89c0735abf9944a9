#include "compute/arbiter_link.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "compute/arbiter_handshake.h"
#include "container/container.h"
#include "process/lock.h"

/* So long nobody is asked again who was not there, or did not want us. */
#define RETRY   (NS_PER_SECOND / 4)
#define REFUSED (10 * NS_PER_SECOND)

const struct arbitration_page *arbiter_link_page(const struct arbiter_link *link) {
    return __atomic_load_n(&link->page, __ATOMIC_ACQUIRE);
}

static int state_of(const struct arbiter_link *link) { return (int)__atomic_load_n(&link->state, __ATOMIC_RELAXED); }

bool arbiter_link_is_up(const struct arbiter_link *link) {
    return state_of(link) != LINK_DISCONNECTED || arbiter_link_is_contended(link);
}

bool arbiter_link_is_connecting(const struct arbiter_link *link) { return state_of(link) == LINK_CONNECTING; }

bool arbiter_link_is_contended(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return page && __atomic_load_n(&page->contended, __ATOMIC_RELAXED);
}

enum contention arbiter_link_contention(const struct arbiter_link *link) {
    return turn_limits_contention(arbiter_link_page(link), state_of(link) == LINK_CONNECTED, clock_now());
}

static void unlock(struct arbiter_link *link) {
    pthread_mutex_unlock(&link->mutex);
    lock_note_released(LOCK_ARBITER_LINK);
}

static bool is_ours(const struct arbiter_link *link) {
    struct stat status;
    return fstat(link->fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == link->inode;
}

static void part(struct arbiter_link *link, uint64_t pause) {
    if (state_of(link) != LINK_DISCONNECTED && is_ours(link)) close(link->fd);
    __atomic_store_n(&link->state, LINK_DISCONNECTED, __ATOMIC_RELAXED);
    link->retry_at = clock_coarse() + pause;
}

/* Those who look at the page meanwhile see the former one's bytes or the new one's: the place stays mapped. */
static void show(struct arbiter_link *link, void *fresh) {
    const struct arbitration_page *page = arbiter_link_page(link);
    if (fresh == MAP_FAILED) return;
    __atomic_store_n(&link->ended, 0, __ATOMIC_RELAXED);
    if (!page)
        __atomic_store_n(&link->page, fresh, __ATOMIC_RELEASE);
    else if (mremap(fresh, sizeof *page, sizeof *page, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)page) == MAP_FAILED)
        munmap(fresh, sizeof *page);
}

static void *zeros(void) {
    return mmap(NULL, sizeof(struct arbitration_page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void greet(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    struct stat status;
    link->fd = arbiter_handshake_send(container_arbiter_socket(), uuid);
    if (link->fd < 0 || fstat(link->fd, &status) != 0) {
        link->retry_at = clock_coarse() + RETRY;
        return;
    }
    link->inode = status.st_ino;
    __atomic_store_n(&link->state, LINK_CONNECTING, __ATOMIC_RELAXED);
}

/* Who is refused is nobody's neighbour, as far as it can know. */
static void take_answer(struct arbiter_link *link) {
    void *page = MAP_FAILED;
    switch (arbiter_handshake_answer(link->fd, &page)) {
        case HANDSHAKE_ACCEPTED:
            show(link, page);
            __atomic_store_n(&link->state, LINK_CONNECTED, __ATOMIC_RELAXED);
            return;
        case HANDSHAKE_REFUSED:
            if (arbiter_link_page(link)) show(link, zeros());
            part(link, REFUSED);
            return;
        case HANDSHAKE_LOST:
            part(link, RETRY);
            return;
        case HANDSHAKE_PENDING:
            return;
    }
}

/* The mutex is held. */
static void look(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    if (link->state != LINK_DISCONNECTED && !is_ours(link)) part(link, RETRY);
    if (link->state == LINK_DISCONNECTED && container_arbiter_socket() && clock_coarse() >= link->retry_at)
        greet(link, uuid);
    if (link->state == LINK_CONNECTING) take_answer(link);
    if (link->state == LINK_CONNECTED && arbiter_handshake_is_lost(link->fd)) part(link, RETRY);
}

/* Who finds another one at it need not look too. */
enum contention arbiter_link_update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    if (pthread_mutex_trylock(&link->mutex) == 0) {
        lock_note_taken(LOCK_ARBITER_LINK);
        look(link, uuid);
        unlock(link);
    }
    return arbiter_link_contention(link);
}

uint32_t arbiter_link_turn(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    uint32_t turn = page ? __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE) : 0;
    return turn != __atomic_load_n(&link->ended, __ATOMIC_RELAXED) ? turn : 0;
}

bool arbiter_link_is_called_back(const struct arbiter_link *link, uint32_t turn) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return __atomic_load_n(&page->turn, __ATOMIC_RELAXED) != turn ||
           __atomic_load_n(&page->yield, __ATOMIC_RELAXED) == turn;
}

/* A full socket is not waited for: what is asked is asked again, and a turn's end comes by the arbiter's clock too. */
static void tell(struct arbiter_link *link, struct arbitration_message message) {
    lock_note_taken(LOCK_ARBITER_LINK);
    pthread_mutex_lock(&link->mutex);
    bool is_joined = link->state == LINK_CONNECTED && is_ours(link);
    if (is_joined && !arbiter_handshake_tell(link->fd, &message)) part(link, RETRY);
    unlock(link);
}

void arbiter_link_want(struct arbiter_link *link) {
    tell(link, (struct arbitration_message){.kind = ARBITRATION_WANT});
}

void arbiter_link_done(struct arbiter_link *link, uint32_t turn, uint64_t ns) {
    __atomic_store_n(&link->ended, turn, __ATOMIC_RELAXED);
    tell(link, (struct arbitration_message){ARBITRATION_DONE, turn, ns});
}

void arbiter_link_wait(const struct arbiter_link *link, uint64_t ns) {
    const struct arbitration_page *page = arbiter_link_page(link);
    struct timespec span = clock_timespec(ns);
    if (!page || arbiter_link_turn(link)) return;
    uint32_t seen = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
    if (seen == 0 || seen == __atomic_load_n(&link->ended, __ATOMIC_RELAXED))
        syscall(SYS_futex, &page->turn, FUTEX_WAIT, seen, &span, NULL, 0);
}

void arbiter_link_forget(struct arbiter_link *link) {
    if (state_of(link) != LINK_DISCONNECTED && is_ours(link)) close(link->fd);
    memset(link, 0, sizeof *link);
}
