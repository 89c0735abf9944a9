/* Token bucket: a container's GPU time on one card. Tokens are ns of GPU time; they flow in at the container's share
 * and are taken out by measured use. The card's row (`struct region_card`) also says which process of the container has
 * the turn: only that process launches.
 *
 * Pure: the clock is an argument, `now` is CLOCK_MONOTONIC in ns. The caller holds the region's lock (LOCK_REGION),
 * except where a function says that it needs no lock. `process` identifies a process, with the values of
 * `region_card.holder`. */
#ifndef VGPU_REGION_TOKEN_BUCKET_H
#define VGPU_REGION_TOKEN_BUCKET_H

#include <stdbool.h>
#include "common/arbitration.h"
#include "common/arithmetic.h"

#include "common/region_layout.h"

/* Burst cap: the most tokens that an idle container can have saved, in ns. */
#define TOKEN_BUCKET_BURST_CAP (10 * NS_PER_MS)

/* Waits for another container's turn from this length on let tokens be kept, up to those of the longest kernel that the
 * arbiter lets run to its end. */
#define TOKEN_BUCKET_LONG_WAIT (50 * NS_PER_MS)
#define TOKEN_BUCKET_WAIT_MAX  ARBITRATION_LONG_KERNEL_NS

/* A holder's turn counts as expired where its end lies further in the future than this, in ns: the region's content is
 * not trusted. */
#define TOKEN_BUCKET_TURN_MAX (ARBITRATION_LONG_KERNEL_NS + 1000 * NS_PER_MS)

/* Takes the turn for `process` and returns 0, or returns how many ns to wait before the next try. The present holder
 * loses the turn once it has expired, whether the holder is dead, stopped or idle. Waiting processes are served in the
 * order of their tickets: `*ticket` is 0 at the first call and then the caller's place in the queue; the next process
 * in the queue is skipped if it does not call again within 1 ms. `share` is 1 to 99 percent. */
uint64_t token_bucket_take(struct region_card *card, uint32_t process, uint32_t *ticket, unsigned share, uint64_t now);

/* Likewise on a linked card (region/linked_cards.h): the debt that is repaid is that of all linked cards, which takes
 * `wait` ns. */
uint64_t token_bucket_take_linked(struct region_card *card, uint32_t process, uint32_t *ticket, unsigned share,
                                  uint64_t wait, uint64_t now);

/* The tokens at `now`, which are not capped. */
int64_t token_bucket_tokens(const struct region_card *card, unsigned share, uint64_t now);

/* Takes the turn for `process`, even if another process has it. */
void token_bucket_seize(struct region_card *card, uint32_t process, uint64_t now);

/* The process has waited `waited` ns for the card, which another container used, before it got its turn. After a long
 * wait the tokens that were earned in it, and in waits after it, are kept beyond the burst cap, up to those of the long
 * wait, until they are used or the container is idle: otherwise a neighbour with long kernels would leave it a part of
 * its share. The turn that begins at `now` has them. */
void token_bucket_keep_earned(struct region_card *card, unsigned share, uint64_t waited, uint64_t now);

/* Whether the holder may keep the turn after a charge of `expected` ns: tokens are left then, and no process waits.
 * Needs no lock. */
bool token_bucket_covers(const struct region_card *card, uint64_t expected);

/* Shows to readers outside that the card is used until `until`, also without turns. Needs no lock. */
void token_bucket_mark_used(struct region_card *card, uint64_t until);

/* Moves the end of the turn of `process` to `until`; no effect where another process has the turn. Needs no lock. */
void token_bucket_extend_turn(struct region_card *card, uint32_t process, uint64_t until);

/* Likewise, while `process` waits for the card's turn: it has no work on the card. */
void token_bucket_extend_wait(struct region_card *card, uint32_t process, uint64_t until);

/* A thread of `process` waits for work that may last until `until`; 0: it waits no longer. No effect where another
 * process has the turn. Needs no lock. */
void token_bucket_note_awaited(struct region_card *card, uint32_t process, uint64_t until);

/* Ends the turn of `process` and charges `cost` ns of GPU time, which it used just before `now`. Time for which another
 * process of the container was charged already is not charged twice. */
void token_bucket_charge(struct region_card *card, uint32_t process, unsigned share, uint64_t cost, uint64_t now);

/* `process` goes on with the turn that token_bucket_charge has just ended: the arbiter's turn is not over. */
void token_bucket_keep_turn(struct region_card *card, uint32_t process);

/* Counts a launch that waited `ns`. Needs no lock. */
void token_bucket_count_wait(struct region_card *card, uint64_t ns);

#endif
