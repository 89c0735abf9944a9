#include "arbiter/container/job_cards.h"

#include "arbiter/container/card_board.h"
#include "arbiter/schedule/job_turn.h"
#include "arbiter/tenant/tenant.h"
#include "common/region_layout.h"

enum { CARD_BITS = 64 };

struct schedule *job_cards_schedule(const struct job *job, unsigned card) { return job->cards[card]->board->schedule; }

int job_cards_tenant(const struct job *job, unsigned card) { return job->cards[card]->tenant; }

void job_cards_touch(const struct job *job) {
    for (unsigned i = 0; i < job->count; i++) card_board_touch(job->cards[i]->board);
}

void job_cards_part(struct job *job) {
    for (unsigned i = 0; i < job->count; i++) job_turn_part(job_cards_schedule(job, i), job_cards_tenant(job, i));
    job_cards_touch(job);
    job->count = 0;
    job->card_bits = 0;
    job->spans = false;
    job->state = CO_IDLE;
}

static uint64_t bit_of(const struct tenancy *card) {
    unsigned number = card_board_number(card->board);
    return number < CARD_BITS ? UINT64_C(1) << number : 0;
}

static bool has_row(uint32_t rows, const struct tenancy *card) {
    return rows == JOB_ANY_ROW || (card->region_row < REGION_CARDS && (rows >> card->region_row & 1) != 0);
}

/* A member's card that is one of the job's. */
static bool is_own(const struct job_member *member, const struct tenancy *card) {
    return card->board && !card->is_member && has_row(member->rows, card) && bit_of(card);
}

/* How many of the job's containers use the card. */
static unsigned users_of(const struct job *job, const struct card_board *board) {
    unsigned count = 0;
    for (unsigned i = 0; i < job->members_count; i++)
        for (unsigned j = 0; j < LIMITS_CARDS; j++) {
            const struct tenancy *card = &job->members[i].container->tenancies[j];
            count += card->board == board && is_own(&job->members[i], card);
        }
    return count;
}

static bool is_possible(const struct job *job, const struct job_member *member, const struct tenancy *card,
                        uint64_t now) {
    bool is_repaying = job->repaid_at && now < job->repaid_at + TENANT_ACTIVE_NS;
    return is_own(member, card) && job_turn_is_possible(card->board->schedule, card->tenant, is_repaying, now) &&
           (job->members_count == 1 || users_of(job, card->board) == 1);
}

static unsigned find_cards(const struct job *job, struct tenancy *found[LIMITS_CARDS], uint64_t now) {
    unsigned count = 0;
    for (unsigned i = 0; i < job->members_count; i++)
        for (unsigned j = 0; j < LIMITS_CARDS && count < LIMITS_CARDS; j++) {
            struct tenancy *card = &job->members[i].container->tenancies[j];
            if (is_possible(job, &job->members[i], card, now)) found[count++] = card;
        }
    return count > 1 ? count : 0;
}

static bool can_be_paced(const struct job *job, const struct job_member *member, const struct tenancy *card) {
    return is_own(member, card) && job_turn_is_pace_possible(card->board->schedule, card->tenant) &&
           users_of(job, card->board) == 1;
}

static bool has_card_to_pace(const struct job *job, const struct job_member *member) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (can_be_paced(job, member, &member->container->tenancies[i])) return true;
    return false;
}

static void pace(const struct tenancy *card, bool is_paced) {
    if (job_turn_pace(card->board->schedule, card->tenant, is_paced)) card_board_touch(card->board);
}

void job_cards_pace(const struct job *job) {
    unsigned containers = 0;
    for (unsigned i = 0; i < job->members_count; i++) containers += has_card_to_pace(job, &job->members[i]);
    bool is_any = job->is_fixed && containers > 1;
    for (unsigned i = 0; i < job->members_count; i++)
        for (unsigned j = 0; j < LIMITS_CARDS; j++) {
            const struct tenancy *card = &job->members[i].container->tenancies[j];
            if (card->board && !card->is_member) pace(card, is_any && can_be_paced(job, &job->members[i], card));
        }
}

void job_cards_stop_pacing(const struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        const struct tenancy *card = &container->tenancies[i];
        if (card->board && !card->is_member) pace(card, false);
    }
}

static bool has_cards(const struct job *job, struct tenancy *const *cards, unsigned count) {
    bool is_same = job->count == count;
    for (unsigned i = 0; is_same && i < count; i++) is_same = job->cards[i] == cards[i];
    return is_same;
}

static void join(struct job *job, struct tenancy *card, uint64_t now) {
    job->cards[job->count++] = card;
    job->card_bits |= bit_of(card);
    job->spans |= card->container != job->cards[0]->container;
    job_turn_join(card->board->schedule, card->tenant, job->number, now);
    if (job->is_fixed) job_turn_ask_back(card->board->schedule, card->tenant, now); /* no other tenant may want it */
}

void job_cards_tell_of_others(const struct job *job) {
    struct job_news news = {.spans = job->spans};
    for (unsigned i = 0; i < job->count; i++)
        job_turn_tell(job_cards_schedule(job, i), job_cards_tenant(job, i), &news);
}

bool job_cards_update(struct job *job, uint64_t now) {
    struct tenancy *found[LIMITS_CARDS];
    unsigned count = find_cards(job, found, now);
    if (has_cards(job, found, count)) return false;
    job_cards_part(job);
    for (unsigned i = 0; i < count; i++) join(job, found[i], now);
    job_cards_tell_of_others(job);
    job_cards_touch(job);
    return true;
}
