#include "compute/gate/joint_pass.h"

#include "common/arithmetic.h"
#include "common/clock.h"

/* How many launches, and of how much GPU time together, may pass one after the other: little beside the turn's depth,
 * which bounds what is in flight. */
#define PASS_NS (1 * NS_PER_MS)

enum { PASS_LAUNCHES = 64, QUARTERS_PER_MS = 256 };

#define LOAD(field)         __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

static unsigned index_of(uint64_t key) { return (unsigned)(key >> 32) % JOINT_PASS_KINDS; }

/* Two kinds in one row may be mixed up for a launch while the row changes: then the estimate of the other counts. */
static bool find(const struct joint_pass *pass, uint64_t key, uint64_t *ns) {
    unsigned index = index_of(key);
    *ns = LOAD(pass->kinds[index].ns);
    return LOAD(pass->kinds[index].key) == key;
}

bool joint_pass_try(struct joint_pass *pass, const struct arbiter_link *link, uint64_t key) {
    uint32_t turn = LOAD(pass->turn);
    uint64_t ns;
    if (!turn || clock_is_due(LOAD(pass->until), clock_ticks()) || arbiter_link_is_asked_to_yield(link, turn))
        return false;
    if (LOAD(pass->launches) >= PASS_LAUNCHES || LOAD(pass->used_ns) >= PASS_NS || !find(pass, key, &ns)) return false;
    __atomic_fetch_add(&pass->launches, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&pass->used_ns, ns, __ATOMIC_RELAXED);
    return true;
}

static void forget_kinds(struct joint_pass *pass) {
    for (unsigned i = 0; i < JOINT_PASS_KINDS; i++) STORE(pass->kinds[i].key, 0);
}

void joint_pass_open(struct joint_pass *pass, uint32_t turn, uint64_t key, uint64_t estimate) {
    unsigned index = index_of(key);
    if (LOAD(pass->turn) != turn) forget_kinds(pass);
    STORE(pass->kinds[index].key, 0);
    STORE(pass->kinds[index].ns, estimate);
    STORE(pass->kinds[index].key, key);
    STORE(pass->until, clock_ticks() + clock_ticks_quarter_second() / QUARTERS_PER_MS);
    STORE(pass->turn, turn);
}

void joint_pass_close(struct joint_pass *pass) { STORE(pass->turn, 0); }

struct passed_launches joint_pass_take(struct joint_pass *pass) {
    return (struct passed_launches){__atomic_exchange_n(&pass->launches, 0, __ATOMIC_RELAXED),
                                    __atomic_exchange_n(&pass->used_ns, 0, __ATOMIC_RELAXED)};
}
