/* A container's GPU time on one card, in the region: tokens come in at its share, are spent by what is measured, and
 * whose turn it is. Pure: the clock is an argument. All under the region's lock, which the caller has. */
#ifndef VGPU_REGION_TOKEN_BUCKET_H
#define VGPU_REGION_TOKEN_BUCKET_H

#include <stdbool.h>
#include "common/arithmetic.h"

#include "common/region_layout.h"

/* What a container that was away finds at most: so much GPU time beyond its share. */
#define TOKEN_BUCKET_BURST_CAP (10 * NS_PER_MS)

/* A holder's word for how long its turn lasts goes as far as this. */
#define TOKEN_BUCKET_TURN_MAX (1000 * NS_PER_MS)

/* Takes the turn for `who`: 0, or how many ns there are to wait before it is worth asking again. The holder is passed
 * over once its lease is out, whether it is dead, stopped or idle. Those who wait are served in their order: `ticket`
 * is this one's, 0 at first; who does not come for his turn is passed over too. `share` is 1 to 99 percent. */
uint64_t token_bucket_take(struct region_card *card, uint32_t who, uint32_t *ticket, unsigned share, uint64_t now);

/* Takes the turn for `who` whoever has it. */
void token_bucket_seize(struct region_card *card, uint32_t who, uint64_t now);

/* Whether the holder may have the next turn too when `expected` ns more have been charged: nothing is owed then, and
 * nobody waits. Needs no lock. */
bool token_bucket_covers(const struct region_card *card, uint64_t expected);

/* Shows that the card is used until then. Needs no lock. */
void token_bucket_show_use(struct region_card *card, uint64_t until);

/* The holder's word that it will need the turn until then. */
void token_bucket_extend_turn(struct region_card *card, uint32_t who, uint64_t until);

/* Ends a turn of `who`, which used `cost` ns of the card just before `now`. What another process of the container has
 * been charged for at the same time is not charged twice. */
void token_bucket_charge(struct region_card *card, uint32_t who, unsigned share, uint64_t cost, uint64_t now);

/* Counts a launch that waited. Needs no lock. */
void token_bucket_count_wait(struct region_card *card, uint64_t ns);

#endif
