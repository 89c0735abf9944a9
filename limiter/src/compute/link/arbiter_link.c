#include "compute/link/arbiter_link.h"

#include <string.h>

#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/arbiter_handshake.h"
#include "container/container.h"
#include "process/lock.h"

/* Back-off before connecting again: after a failed or lost connection, and after a refusal. */
#define RETRY_AFTER_FAILURE (NS_PER_SECOND / 4)
#define RETRY_AFTER_REFUSAL (10 * NS_PER_SECOND)

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

static struct arbiter_link *hold(struct arbiter_link *link) {
    lock_note_taken(LOCK_ARBITER_LINK);
    mutex_lock(&link->mutex);
    return link;
}

/* NULL if another thread holds the lock. */
static struct arbiter_link *try_hold(struct arbiter_link *link) {
    if (!mutex_try_lock(&link->mutex)) return NULL;
    lock_note_taken(LOCK_ARBITER_LINK);
    return link;
}

static void drop(struct arbiter_link **held) {
    if (!*held) return;
    mutex_unlock(&(*held)->mutex);
    lock_note_released(LOCK_ARBITER_LINK);
}

/* Of a variable that hold or try_hold returns: LOCK_ARBITER_LINK is held to the end of the enclosing block. */
#define HELD __attribute__((cleanup(drop)))

static bool is_own_socket(const struct arbiter_link *link) {
    struct stat status = {0};
    return system_fstat(link->fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == link->socket_inode;
}

static void disconnect(struct arbiter_link *link, uint64_t retry_delay) {
    if (state_of(link) != LINK_DISCONNECTED && is_own_socket(link)) system_close(link->fd);
    __atomic_store_n(&link->state, LINK_DISCONNECTED, __ATOMIC_RELAXED);
    link->retry_at = clock_coarse() + retry_delay;
}

/* Maps a new page in place of the current one. Other threads may read the page meanwhile; its address stays mapped, so
 * they see the fields of either page. */
static void map_page(struct arbiter_link *link, void *fresh) {
    const struct arbitration_page *page = arbiter_link_page(link);
    if (fresh == MAP_FAILED) return;
    __atomic_store_n(&link->last_returned, 0, __ATOMIC_RELAXED);
    if (!page)
        __atomic_store_n(&link->page, fresh, __ATOMIC_RELEASE);
    else if (system_remap(fresh, sizeof *page, (void *)page) == MAP_FAILED)
        system_unmap(fresh, sizeof *page);
}

static void *map_zero_page(void) {
    return system_map(sizeof(struct arbitration_page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void begin_handshake(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    struct stat status = {0};
    link->fd = arbiter_handshake_send_hello(container_arbiter_socket(), uuid);
    if (link->fd < 0 || system_fstat(link->fd, &status) != 0) {
        link->retry_at = clock_coarse() + RETRY_AFTER_FAILURE;
        return;
    }
    link->socket_inode = status.st_ino;
    __atomic_store_n(&link->state, LINK_CONNECTING, __ATOMIC_RELAXED);
}

/* A refused client gets a page of zeros if it had a page before: the card counts as not contended, and the process
 * launches without turns of the arbiter's. */
static void finish_handshake(struct arbiter_link *link) {
    void *page = MAP_FAILED;
    switch (arbiter_handshake_receive_welcome(link->fd, &page)) {
        case HANDSHAKE_ACCEPTED:
            map_page(link, page);
            __atomic_store_n(&link->state, LINK_CONNECTED, __ATOMIC_RELAXED);
            return;
        case HANDSHAKE_REFUSED:
            if (arbiter_link_page(link)) map_page(link, map_zero_page());
            disconnect(link, RETRY_AFTER_REFUSAL);
            return;
        case HANDSHAKE_LOST:
            disconnect(link, RETRY_AFTER_FAILURE);
            return;
        case HANDSHAKE_PENDING:
            return;
    }
}

/* The caller holds LOCK_ARBITER_LINK. */
static void update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    if (link->state != LINK_DISCONNECTED && !is_own_socket(link)) disconnect(link, RETRY_AFTER_FAILURE);
    if (link->state == LINK_DISCONNECTED && container_arbiter_socket() && clock_coarse() >= link->retry_at)
        begin_handshake(link, uuid);
    if (link->state == LINK_CONNECTING) finish_handshake(link);
    if (link->state == LINK_CONNECTED && arbiter_handshake_is_lost(link->fd)) disconnect(link, RETRY_AFTER_FAILURE);
}

static void try_update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    HELD struct arbiter_link *held = try_hold(link);
    if (held) update(held, uuid);
}

enum contention arbiter_link_update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]) {
    try_update(link, uuid);
    return arbiter_link_contention(link);
}

uint32_t arbiter_link_turn(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    uint32_t turn = page ? __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE) : 0;
    return turn != __atomic_load_n(&link->last_returned, __ATOMIC_RELAXED) ? turn : 0;
}

bool arbiter_link_is_asked_to_yield(const struct arbiter_link *link, uint32_t turn) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return __atomic_load_n(&page->turn, __ATOMIC_RELAXED) != turn ||
           __atomic_load_n(&page->yield_turn, __ATOMIC_RELAXED) == turn;
}

/* A full socket buffer is not waited for. WANT is sent again while the process waits, and the arbiter ends turns by its
 * own clock, so a lost message costs only time. */
static void send_message(struct arbiter_link *link, struct arbitration_message message) {
    HELD struct arbiter_link *held = hold(link);
    bool is_connected = held->state == LINK_CONNECTED && is_own_socket(held);
    if (is_connected && !arbiter_handshake_send_message(held->fd, &message)) disconnect(held, RETRY_AFTER_FAILURE);
}

void arbiter_link_note_steps(struct arbiter_link *link, uint64_t suitable_turn, uint64_t step) {
    __atomic_store_n(&link->suitable_turn_ns, suitable_turn, __ATOMIC_RELAXED);
    __atomic_store_n(&link->step_us, (uint32_t)min_u64(step / NS_PER_US, UINT32_MAX), __ATOMIC_RELAXED);
}

void arbiter_link_want(struct arbiter_link *link) {
    uint64_t longest = __atomic_load_n(&link->suitable_turn_ns, __ATOMIC_RELAXED);
    uint32_t step_us = __atomic_load_n(&link->step_us, __ATOMIC_RELAXED);
    send_message(link, (struct arbitration_message){ARBITRATION_WANT, .step_us = step_us, .ns = longest});
}

void arbiter_link_done(struct arbiter_link *link, uint32_t turn, uint64_t ns, bool is_awaited) {
    __atomic_store_n(&link->last_returned, turn, __ATOMIC_RELAXED);
    uint32_t kind = is_awaited ? ARBITRATION_DONE_AWAITED : ARBITRATION_DONE;
    send_message(link, (struct arbitration_message){.kind = kind, .turn = turn, .ns = ns});
}

void arbiter_link_wait(const struct arbiter_link *link, uint64_t ns) {
    const struct arbitration_page *page = arbiter_link_page(link);
    if (!page || arbiter_link_turn(link)) return;
    uint32_t seen = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
    if (seen == 0 || seen == __atomic_load_n(&link->last_returned, __ATOMIC_RELAXED))
        system_futex_wait(&page->turn, seen, ns, 0);
}

/* The arbiter wakes the futex for a request to yield, too; one between the check and the call is noticed later. */
void arbiter_link_await_yield(const struct arbiter_link *link, uint32_t turn, uint64_t ns) {
    if (!arbiter_link_is_asked_to_yield(link, turn)) system_futex_wait(&arbiter_link_page(link)->turn, turn, ns, 0);
}

void arbiter_link_forget(struct arbiter_link *link) {
    if (state_of(link) != LINK_DISCONNECTED && is_own_socket(link)) system_close(link->fd);
    memset(link, 0, sizeof *link);
}
