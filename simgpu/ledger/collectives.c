#include "ledger/collectives.h"

#include <stddef.h>

#include "ledger/state.h"

/* state->collectives_open may be wrong after a process was killed; then it is too large, or corrected by
 * collectives_drop_ended. */
bool collectives_are_any(void) { return __atomic_load_n(&state->collectives_open, __ATOMIC_RELAXED) > 0; }

static bool is_open(const struct collective *collective) { return collective->ticket != 0; }

static struct collective *find(struct collective_key key) {
    for (uint64_t i = 0; i < COLLECTIVES; i++) {
        struct collective *at = &state->collective[i];
        bool is_asked = is_open(at) && at->group == key.group && at->round == key.round && at->ranks == key.ranks;
        if (is_asked && at->joined < at->ranks) return at;
    }
    return NULL;
}

static struct collective *create(struct collective_key key) {
    for (uint64_t i = 0; i < COLLECTIVES; i++) {
        struct collective *at = &state->collective[i];
        if (is_open(at)) continue;
        *at = (struct collective){.group = key.group, .round = key.round, .ranks = key.ranks};
        state->collective_tickets += COLLECTIVES;
        at->ticket = state->collective_tickets + i;
        __atomic_fetch_add(&state->collectives_open, 1, __ATOMIC_RELAXED);
        return at;
    }
    return NULL;
}

uint64_t collective_join(struct collective_key key, struct card_queue queue) {
    struct collective *joined = find(key);
    if (!joined) joined = create(key);
    if (!joined) return 0;
    struct collective_rank *rank = &joined->rank[joined->joined++];
    *rank = (struct collective_rank){.card = queue.card, .queue = queue.number, .queue_id = queue.id};
    return joined->ticket;
}

static struct timeline *timeline_of(const struct collective_rank *rank) { return &state->time[rank->card].timeline; }

static bool lives(const struct collective_rank *rank) {
    return timeline_of(rank)->queue[rank->queue].id == rank->queue_id;
}

static void end(struct collective *collective) {
    collective->ticket = 0;
    __atomic_fetch_sub(&state->collectives_open, 1, __ATOMIC_RELAXED);
}

void collective_note_begun(uint64_t ticket) {
    struct collective *begun = &state->collective[ticket % COLLECTIVES];
    if (begun->ticket != ticket || ++begun->begun < begun->ranks) return;
    for (uint32_t i = 0; i < begun->joined; i++)
        if (lives(&begun->rank[i])) timeline_release(timeline_of(&begun->rank[i]), begun->rank[i].queue);
    end(begun);
}

static bool has_ended(const struct collective *collective) {
    for (uint32_t i = 0; i < collective->joined; i++)
        if (lives(&collective->rank[i])) return false;
    return is_open(collective);
}

void collectives_drop_ended(void) {
    uint64_t open = 0;
    for (uint64_t i = 0; i < COLLECTIVES; i++) {
        if (has_ended(&state->collective[i])) end(&state->collective[i]);
        open += is_open(&state->collective[i]);
    }
    __atomic_store_n(&state->collectives_open, open, __ATOMIC_RELAXED);
}
