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

/* So long nobody is asked again who was not there, or did not want us. */
#define RETRY   (NS_PER_SECOND / 4)
#define REFUSED (10 * NS_PER_SECOND)

const struct arbitration_page *link_page(const struct link *link) {
    return __atomic_load_n(&link->page, __ATOMIC_ACQUIRE);
}

static int state_of(const struct link *link) { return (int)__atomic_load_n(&link->state, __ATOMIC_RELAXED); }

bool link_is_up(const struct link *link) { return state_of(link) != LINK_APART || link_is_contended(link); }

bool link_is_greeting(const struct link *link) { return state_of(link) == LINK_GREETING; }

bool link_is_contended(const struct link *link) {
    const struct arbitration_page *page = link_page(link);
    return page && __atomic_load_n(&page->contended, __ATOMIC_RELAXED);
}

enum standing link_standing(const struct link *link) {
    return terms_standing(link_page(link), state_of(link) == LINK_JOINED, moment_now());
}

static bool is_ours(const struct link *link) {
    struct stat status;
    return fstat(link->fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == link->inode;
}

static void part(struct link *link, uint64_t pause) {
    if (state_of(link) != LINK_APART && is_ours(link)) close(link->fd);
    __atomic_store_n(&link->state, LINK_APART, __ATOMIC_RELAXED);
    link->retry_at = moment_coarse() + pause;
}

/* Those who look at the page meanwhile see the former one's bytes or the new one's: the place stays mapped. */
static void show(struct link *link, void *fresh) {
    const struct arbitration_page *page = link_page(link);
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

static void greet(struct link *link, const uint8_t uuid[UUID_SIZE]) {
    struct stat status;
    link->fd = greeting_send(place_arbiter(), uuid);
    if (link->fd < 0 || fstat(link->fd, &status) != 0) {
        link->retry_at = moment_coarse() + RETRY;
        return;
    }
    link->inode = status.st_ino;
    __atomic_store_n(&link->state, LINK_GREETING, __ATOMIC_RELAXED);
}

/* Who is refused is nobody's neighbour, as far as it can know. */
static void take_answer(struct link *link) {
    void *page = MAP_FAILED;
    switch (greeting_answer(link->fd, &page)) {
        case GREETING_ACCEPTED:
            show(link, page);
            __atomic_store_n(&link->state, LINK_JOINED, __ATOMIC_RELAXED);
            return;
        case GREETING_REFUSED:
            if (link_page(link)) show(link, zeros());
            part(link, REFUSED);
            return;
        case GREETING_LOST:
            part(link, RETRY);
            return;
        case GREETING_NONE:
            return;
    }
}

/* The mutex is held. */
static void look(struct link *link, const uint8_t uuid[UUID_SIZE]) {
    if (link->state != LINK_APART && !is_ours(link)) part(link, RETRY);
    if (link->state == LINK_APART && place_arbiter() && moment_coarse() >= link->retry_at) greet(link, uuid);
    if (link->state == LINK_GREETING) take_answer(link);
    if (link->state == LINK_JOINED && greeting_is_lost(link->fd)) part(link, RETRY);
}

/* Who finds another one at it need not look too. */
enum standing link_look(struct link *link, const uint8_t uuid[UUID_SIZE]) {
    if (pthread_mutex_trylock(&link->mutex) == 0) {
        look(link, uuid);
        pthread_mutex_unlock(&link->mutex);
    }
    return link_standing(link);
}

uint32_t link_turn(const struct link *link) {
    const struct arbitration_page *page = link_page(link);
    uint32_t turn = page ? __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE) : 0;
    return turn != __atomic_load_n(&link->ended, __ATOMIC_RELAXED) ? turn : 0;
}

bool link_is_called_back(const struct link *link, uint32_t turn) {
    const struct arbitration_page *page = link_page(link);
    return __atomic_load_n(&page->turn, __ATOMIC_RELAXED) != turn ||
           __atomic_load_n(&page->yield, __ATOMIC_RELAXED) == turn;
}

/* A full socket is not waited for: what is asked is asked again, and a turn's end comes by the arbiter's clock too. */
static void tell(struct link *link, struct arbitration_message message) {
    pthread_mutex_lock(&link->mutex);
    bool is_joined = link->state == LINK_JOINED && is_ours(link);
    if (is_joined && !greeting_tell(link->fd, &message)) part(link, RETRY);
    pthread_mutex_unlock(&link->mutex);
}

void link_want(struct link *link) { tell(link, (struct arbitration_message){.kind = ARBITRATION_WANT}); }

void link_done(struct link *link, uint32_t turn, uint64_t ns) {
    __atomic_store_n(&link->ended, turn, __ATOMIC_RELAXED);
    tell(link, (struct arbitration_message){ARBITRATION_DONE, turn, ns});
}

void link_nap(const struct link *link, uint64_t ns) {
    const struct arbitration_page *page = link_page(link);
    struct timespec span = moment_span(ns);
    if (!page || link_turn(link)) return;
    uint32_t seen = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
    if (seen == 0 || seen == __atomic_load_n(&link->ended, __ATOMIC_RELAXED))
        syscall(SYS_futex, &page->turn, FUTEX_WAIT, seen, &span, NULL, 0);
}

void link_forget(struct link *link) {
    if (state_of(link) != LINK_APART && is_ours(link)) close(link->fd);
    memset(link, 0, sizeof *link);
}
