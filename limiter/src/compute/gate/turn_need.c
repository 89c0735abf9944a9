#include "compute/gate/turn_need.h"

#include "process/fork.h"

#include "common/clock.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/turn_request.h"
#include "container/container.h"

static uint64_t used_devices; /* atomic; one bit for each CUDA device ordinal on which a context was created */

/* While the welcome of the arbiter is awaited, checks are this many times as frequent: about every millisecond. */
enum { CONNECTING_DIVISOR = 256 };

/* All that a launch without a fixed share reads, besides the tick counter and the arbiter's page: one cache line. */
static struct {
    uint64_t next_check_at; /* atomic; clock_ticks() at which the answer is refreshed, 0 = at once */
    bool is_needed;         /* atomic; a launch may need a turn, whatever `link` says */
    const struct arbiter_link
        *link; /* atomic; the link for the one card that this process uses; NULL if it uses several, or none */
} cache __attribute__((aligned(64)));

/* Also true if the tick counter was set back, as by a live migration of the machine. */
static bool is_due(const uint64_t *check_at, uint64_t now) {
    return __atomic_load_n(check_at, __ATOMIC_RELAXED) - now > clock_ticks_quarter_second();
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
static void schedule_check(uint64_t *check_at, uint64_t now, bool is_connecting) {
    uint64_t interval = clock_ticks_quarter_second();
    __atomic_store_n(check_at, now + (is_connecting ? interval / CONNECTING_DIVISOR : interval), __ATOMIC_RELAXED);
}

static bool refresh_gate(struct gate *gate, uint64_t now) {
    turn_request_update(&gate->request);
    bool has_share = container_share(gate->request.uuid) != 0;
    __atomic_store_n(&gate->has_share, has_share, __ATOMIC_RELAXED);
    schedule_check(&gate->next_check_at, now, arbiter_link_is_connecting(&gate->request.link));
    return has_share;
}

bool turn_need_is_at_gate(struct gate *gate) {
    uint64_t now = clock_ticks();
    bool has_share = is_due(&gate->next_check_at, now) ? refresh_gate(gate, now)
                                                       : __atomic_load_n(&gate->has_share, __ATOMIC_RELAXED);
    return turn_request_is_needed(&gate->request, has_share);
}

static bool is_any_link_up(void) {
    bool is_up = false;
    for (int i = 0; i < GATES; i++) is_up |= gate_at(i) && arbiter_link_is_up(&gate_at(i)->request.link);
    return is_up;
}

/* With several cards, each launch has to find out which card it is for, so no single link answers for all. */
static bool uses_several_devices(void) {
    uint64_t used = __atomic_load_n(&used_devices, __ATOMIC_RELAXED);
    return (used & (used - 1)) != 0;
}

static const struct arbiter_link *refresh_limited(uint64_t now) {
    struct gate *gate = container_arbiter_socket() ? gate_of_current_context() : NULL;
    bool is_one = gate && !uses_several_devices();
    if (gate) refresh_gate(gate, now);
    __atomic_store_n(&cache.is_needed, container_has_shares() || (!is_one && is_any_link_up()), __ATOMIC_RELAXED);
    return is_one ? &gate->request.link : NULL;
}

static void refresh(uint64_t now) {
    const struct arbiter_link *link = container_is_limited() ? refresh_limited(now) : NULL;
    __atomic_store_n(&cache.link, link, __ATOMIC_RELEASE);
    schedule_check(&cache.next_check_at, now, link && arbiter_link_is_connecting(link));
}

bool turn_need_is_any(void) {
    uint64_t now = clock_ticks();
    if (is_due(&cache.next_check_at, now)) refresh(now);
    const struct arbiter_link *link = __atomic_load_n(&cache.link, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&cache.is_needed, __ATOMIC_RELAXED) || (link && arbiter_link_is_contended(link));
}

void turn_need_note_device(CUdevice device) {
    if (device >= 0 && device < GATES) __atomic_fetch_or(&used_devices, 1ULL << device, __ATOMIC_RELAXED);
    __atomic_store_n(&cache.next_check_at, 0, __ATOMIC_RELAXED);
}

static void forget(void) {
    cache.next_check_at = 0;
    cache.link = NULL;
    used_devices = 0;
}
FORGET_IN_CHILD(forget);
