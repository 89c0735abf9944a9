/* Cards of a container that are linked: kernels of collectives on one of them wait for kernels on the others, so under
 * fixed shares they open and close together (ADR 176).
 *
 * The cards open in windows, which have numbers. In a window each card admits launches until it, and each other card,
 * has had its budget, and then until it has had as many batches as the one with most: cards that run the same program
 * then end their windows at the same point of it. A batch is what a thread launches on a card before it comes to
 * another one; each launch is one if the thread launches for one card only. It is not interrupted, because the thread
 * would not come to the other cards. Then a card closes, drains, and is charged. Launches that another card waits for
 * go one at a time meanwhile. The first card to open again waits until all have repaid, and begins the next window,
 * which the others join.
 *
 * Pure: no clock, no lock. GPU times are in ns. */
#ifndef VGPU_REGION_LINKED_CARDS_H
#define VGPU_REGION_LINKED_CARDS_H

#include <stdbool.h>

#include "common/arithmetic.h"
#include "common/region_layout.h"

/* The most that a card has in a window beyond its budget, and the most that launches take between two windows because
 * another card waits for them. A step of a job whose thread launches for one card after the other is shorter. */
#define LINKED_AHEAD_MAX (100 * NS_PER_MS)

/* A linked card as the decisions see it. */
struct linked_card {
    uint32_t window; /* that it was last opened in */
    uint64_t used;   /* of the launches admitted in it, unless they were charged */
    int64_t tokens;
    uint32_t batches; /* number of batches of these launches; of another card, without those by which it caught up */
    unsigned share;   /* percent; 0 = no fixed share, and no debt */
    bool is_served;   /* it has had its budget in the window */
    bool is_open;     /* `used` is not charged yet */
    bool is_active;   /* launches come */
    bool is_in_batch; /* of the card itself: the next launch begins no batch */
};

/* The process in the slot has joined these cards, one bit for each row; they are linked as long as it lives, or until
 * linked_cards_part. The caller holds LOCK_REGION. */
void linked_cards_join(struct region *region, int slot, uint32_t cards);
void linked_cards_part(struct region *region, int slot);

/* The cards that are linked with a card, with its own bit; 0 = none is. The caller holds LOCK_REGION. */
uint32_t linked_cards_of(const struct region *region, unsigned card);

/* The ns until a closed card may open, and in `window` the number of the window that it opens in: that of another card
 * that has begun a new one, at once; else the next one, when all have repaid what they have used. */
uint64_t linked_cards_wait(const struct linked_card *own, const struct linked_card *others, unsigned count,
                           uint32_t *window);

enum linked_verdict {
    LINKED_FULL,
    LINKED_FITS,
    LINKED_CATCHES_UP, /* it fits, and is not for others to catch up with */
};

/* Whether an open card, whose `own->used` and `own->batches` the caller knows best, admits one more launch. `fits`: its
 * budget has room. */
enum linked_verdict linked_cards_judge(const struct linked_card *own, const struct linked_card *others, unsigned count,
                                       bool fits);

/* Whether a card whose turn is asked back by the arbiter admits one more launch: until it has had as many batches as
 * the card with most, and to the end of a batch. */
enum linked_verdict linked_cards_judge_last(const struct linked_card *own, const struct linked_card *others,
                                            unsigned count);

/* Windows of a job are its turns: only whether a card has begun the one with this number counts, so it is in window 1
 * or in window 0. Called before the functions above. */
void linked_cards_show_job(struct linked_card *own, struct linked_card *others, unsigned count, uint32_t job);

/* Whether a closed card with these tokens may have one more launch, which another card waits for. `for_others`: what
 * such launches have taken since its last window. A card that owes more for other reasons has them, too: the card that
 * waits would spin until the debt is repaid, would owe that time, and the first one would wait for it in its turn. At
 * small shares each wait would be longer than the one before. */
bool linked_cards_may_owe(int64_t tokens, uint64_t for_others);

#endif
