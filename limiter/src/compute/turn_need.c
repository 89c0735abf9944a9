#include "compute/turn_need.h"

#include "process/fork.h"

#include "common/clock.h"
#include "compute/arbiter_link.h"
#include "compute/turn_request.h"
#include "container/container.h"

static uint64_t devices; /* atomically: a bit for each that a context was made on */

/* How much sooner the arbiter's answer is looked for than all else. */
enum { GREETING = 256 };

/* All that a launch without a share looks at: one line of memory, and the processor's clock; and where there is an
 * arbiter its page. */
static struct {
    uint64_t due;   /* atomically: when the limits are to be looked at again, in ticks; 0 = at once */
    bool is_needed; /* atomically: as of the last look */
    const struct arbiter_link
        *link; /* atomically: about the one card that this process uses, NULL where it uses several */
} judged __attribute__((aligned(64)));

/* A clock that was set back, as by a machine's move, is due too. */
static bool is_due(const uint64_t *due, uint64_t now) {
    return __atomic_load_n(due, __ATOMIC_RELAXED) - now > clock_ticks_quarter_second();
}

/* The arbiter's first answer is looked for sooner. */
static void put_off(uint64_t *due, uint64_t now, bool is_greeting) { /* NOLINT(readability-non-const-parameter) */
    uint64_t pause = clock_ticks_quarter_second();
    __atomic_store_n(due, now + (is_greeting ? pause / GREETING : pause), __ATOMIC_RELAXED);
}

static bool look(struct gate *gate, uint64_t now) {
    turn_request_update(&gate->request);
    bool is_shared = container_share(gate->request.uuid) != 0;
    __atomic_store_n(&gate->is_shared, is_shared, __ATOMIC_RELAXED);
    put_off(&gate->due, now, arbiter_link_is_connecting(&gate->request.link));
    return is_shared;
}

bool turn_need_is(struct gate *gate) {
    uint64_t now = clock_ticks();
    bool is_shared = is_due(&gate->due, now) ? look(gate, now) : __atomic_load_n(&gate->is_shared, __ATOMIC_RELAXED);
    return turn_request_is_needed(&gate->request, is_shared);
}

/* Whether the arbiter is to be listened to, about any card. */
static bool is_any_up(void) {
    bool any = false;
    for (int i = 0; i < GATES; i++) any |= gate_at(i) && arbiter_link_is_up(&gate_at(i)->request.link);
    return any;
}

/* Of several cards each launch has to ask which it is for. */
static bool uses_several(void) {
    uint64_t used = __atomic_load_n(&devices, __ATOMIC_RELAXED);
    return (used & (used - 1)) != 0;
}

static const struct arbiter_link *judge_limited(uint64_t now) {
    struct gate *gate = container_arbiter_socket() ? gate_here() : NULL;
    bool is_one = gate && !uses_several();
    if (gate) look(gate, now);
    __atomic_store_n(&judged.is_needed, container_has_shares() || (!is_one && is_any_up()), __ATOMIC_RELAXED);
    return is_one ? &gate->request.link : NULL;
}

static void judge(uint64_t now) {
    const struct arbiter_link *link = container_is_limited() ? judge_limited(now) : NULL;
    __atomic_store_n(&judged.link, link, __ATOMIC_RELEASE);
    put_off(&judged.due, now, link && arbiter_link_is_connecting(link));
}

bool turn_need_is_any(void) {
    uint64_t now = clock_ticks();
    if (is_due(&judged.due, now)) judge(now);
    const struct arbiter_link *link = __atomic_load_n(&judged.link, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&judged.is_needed, __ATOMIC_RELAXED) || (link && arbiter_link_is_contended(link));
}

void turn_need_note_device(CUdevice device) {
    if (device >= 0 && device < GATES) __atomic_fetch_or(&devices, 1ULL << device, __ATOMIC_RELAXED);
    __atomic_store_n(&judged.due, 0, __ATOMIC_RELAXED);
}

static void forget(void) {
    judged.due = 0;
    judged.link = NULL;
    devices = 0;
}
FORGET_IN_CHILD(forget);
