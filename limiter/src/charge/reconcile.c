#include "charge/reconcile.h"

#include <time.h>

#include "books/pools.h"
#include "charge/cadence.h"
#include "charge/charge.h"
#include "charge/lost_pool_memory.h"
#include "charge/nvml_usage.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/account.h"

/* How often a measurement is tried that other threads' calls spoil, and the pause between. */
enum { TRIES = 5, PAUSE_NS = 50000 };

/* While the driver clears a dead process away a measurement takes long, and a program waits for all of them. */
static const uint64_t TRIES_NS = 40000000;

/* One look: the calls of each slot, and what our pools had reserved, as they stood before NVML was asked. */
struct look {
    struct region *region;
    int card;
    int slots;
    int own_slot;
    unsigned own;
    uint64_t pooled;
    uint64_t calls[REGION_SLOTS];
    struct figures figures;
};

static bool begin(struct look *look, const uint8_t uuid[UUID_SIZE], unsigned own) {
    look->region = place_region();
    look->card = look->region ? account_find_card(look->region, uuid) : -1;
    if (look->card < 0 || !measure_is_trusted()) return false;
    look->own = own;
    look->own_slot = place_slot(look->region);
    look->slots = account_slots(look->region);
    for (int slot = 0; slot < look->slots; slot++) look->calls[slot] = account_calls(look->region, slot);
    pools_lock();
    bool known = pools_see(look->card, &look->pooled);
    pools_unlock();
    return known && measure_card(uuid, &look->figures);
}

/* The functions down to the next line are called under the region's lock and the pools'. */

static bool set(const struct look *look, int slot) {
    uint64_t bytes, calls = look->calls[slot];
    if (!measure_of(&look->figures, look->region->slots[slot].pid, &bytes)) return false;
    return slot == look->own_slot ? account_settle(look->region, slot, look->card, bytes, calls, look->own)
                                  : account_settle_other(look->region, slot, look->card, bytes, calls);
}

/* What our pools have given back meanwhile, at another thread's synchronisation, is or is not in the figures. */
static bool settle_self(const struct look *look, bool is_pooled_same) {
    if (look->own_slot < 0 || !is_pooled_same) return false;
    charge_catch_up(look->region, look->own_slot);
    lost_charge_on(look->region, look->card);
    if (!set(look, look->own_slot)) return false;
    pools_adopt(look->card, account_settled(look->region, look->own_slot, look->card));
    return true;
}

/* Another's pid means something to us in our own pid namespace only. */
static bool is_seen(const struct look *look, int slot, const struct identity *self) {
    const struct region_slot *of = &look->region->slots[slot];
    return slot != look->own_slot && of->pid != 0 && of->namespace == self->namespace;
}

/* Whether all of them could be. */
static bool set_others(const struct look *look) {
    struct identity self = place_self();
    bool done = true;
    for (int slot = 0; slot < look->slots; slot++)
        if (is_seen(look, slot, &self)) done &= set(look, slot);
    return done;
}

/* The functions from here on take it. */

static bool correct(const struct look *look, bool others) {
    uint64_t pooled;
    bool done = false;
    pools_lock();
    bool is_same = pools_see(look->card, &pooled) && pooled == look->pooled;
    if (region_lock(look->region, CHARGE_LOCK_MS) == 0) {
        done = settle_self(look, is_same);
        if (others) set_others(look);
        region_unlock(look->region);
    }
    pools_unlock();
    return done;
}

static bool settle(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    struct look look;
    if (!begin(&look, uuid, own)) return false;
    bool done = correct(&look, others);
    measure_free(&look.figures);
    return done;
}

static bool insist(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    if (!measure_is_trusted()) return false;
    uint64_t until = moment_now() + TRIES_NS;
    for (int tries = 1; !settle(uuid, own, others); tries++) {
        if (tries == TRIES || moment_now() > until) return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

/* Where nothing can be measured there is nothing to try again for. */
static bool settle_others_on(const uint8_t uuid[UUID_SIZE]) {
    struct look look;
    if (!begin(&look, uuid, 0)) return true;
    bool done = false;
    if (region_lock(look.region, CHARGE_LOCK_MS) == 0) {
        done = set_others(&look);
        region_unlock(look.region);
    }
    measure_free(&look.figures);
    return done;
}

void settle_others(void) {
    const struct region *region = place_region();
    for (int card = 0; region && card < REGION_CARDS; card++)
        for (int tries = 0; tries < TRIES && region->cards[card].taken; tries++) {
            if (settle_others_on(region->cards[card].uuid)) break;
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        }
}

bool settle_own(const uint8_t uuid[UUID_SIZE], unsigned own) { return insist(uuid, own, false); }

bool settle_once(const uint8_t uuid[UUID_SIZE], unsigned own) {
    return measure_is_trusted() && settle(uuid, own, false);
}

bool settle_all(const uint8_t uuid[UUID_SIZE], unsigned own) { return insist(uuid, own, true); }

void settle_every_card(unsigned own) {
    const struct region *region = place_region();
    for (int card = 0; region && card < REGION_CARDS; card++)
        if (region->cards[card].taken) insist(region->cards[card].uuid, own, true);
}

static struct cadence cadences[REGION_CARDS];

/* The view need not be nearer to all than it is to the dead (reaping.h): some 10 to 100 ms, and of the time 0.5 %. */
static struct cadence_terms terms(void) {
    uint64_t most = moment_ticks_between_looks() / 2;
    return (struct cadence_terms){.least = most / 8, .most = most, .times = 200};
}

bool settle_if_due(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    const struct region *region = measure_is_trusted() ? place_region() : NULL;
    int card = region ? account_find_card(region, uuid) : -1;
    if (card < 0) return false;
    uint64_t begun = moment_ticks();
    if (!cadence_take(&cadences[card], terms(), begun)) return false;
    uint32_t before = account_settled(region, place_slot(region), card);
    bool done = settle(uuid, own, others);
    bool has_changed = account_settled(region, place_slot(region), card) != before;
    cadence_looked(&cadences[card], terms(), begun, moment_ticks(), !done || has_changed);
    return done;
}

void settle_soon(void) {
    const struct region *region = place_region();
    for (int card = 0; region && card < REGION_CARDS && region->cards[card].taken; card++)
        cadence_hasten(&cadences[card]);
}
