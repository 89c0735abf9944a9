/* What the linked cards of a container (region/linked_cards.h) tell each other through its region. */
#ifndef VGPU_COMPUTE_LINK_LINKED_TURN_H
#define VGPU_COMPUTE_LINK_LINKED_TURN_H

#include "region/linked_cards.h"

/* The other cards, as a card sees them. */
struct linked_view {
    uint32_t cards; /* those and the card itself, one bit for each row; 0 = none is linked */
    unsigned count;
    struct linked_card others[REGION_CARDS];
};

/* The percentages of the cards that were linked with this one when it was last opened. Takes LOCK_CONTAINER, and not
 * LOCK_REGION. */
struct linked_view linked_turn_look(const struct region_card *card);

/* Finds out which cards are linked with the card from its next opening on. The caller holds LOCK_REGION. */
void linked_turn_refresh(const struct region_card *card);

/* The card's number, in its container. */
unsigned linked_turn_number(const struct region_card *card);

/* Completes the view. The caller holds LOCK_REGION. */
void linked_turn_read(struct linked_view *view, const struct region_card *card, uint64_t now);

/* The card by itself. The caller holds LOCK_REGION. */
struct linked_card linked_turn_own(const struct region_card *card, unsigned share, uint64_t now);

/* The card opens in this window. The caller holds LOCK_REGION. */
void linked_turn_open(const struct region_card *card, uint32_t window);

/* The card has a part of a job's turn with this number; whether it is the first one. */
bool linked_turn_open_for_job(const struct region_card *card, uint32_t job);

/* The card opens and closes by itself: it has no fixed share, or other containers use it. */
void linked_turn_stay_apart(const struct region_card *card);

/* What was admitted in the card's open window. */
struct linked_use {
    uint64_t ns;
    uint32_t batches;           /* of a thread's launches (launch_batch.h) */
    uint32_t job;               /* the number of the job's turn that the window is; 0 = it is a share's */
    uint32_t batches_elsewhere; /* of a job's turn that is asked back: the most in another container */
};

/* Whether the card admits one more launch in its open window. `fits`: its budget has room. `is_in_batch`: the launch
 * begins no batch. Takes no lock. */
enum linked_verdict linked_turn_judge(const struct region_card *card, struct linked_use use, bool fits,
                                      bool is_in_batch, uint64_t now);

/* Likewise after the request to yield (linked_cards_judge_last). Takes no lock. */
enum linked_verdict linked_turn_judge_last(const struct region_card *card, struct linked_use use, bool is_in_batch,
                                           uint64_t now);

/* A launch was admitted, by this verdict; `use` is with it. Takes no lock. */
void linked_turn_note_launch(const struct region_card *card, struct linked_use use, enum linked_verdict verdict);

/* A thread begins to wait for the card's work, or has waited for it. Takes no lock. */
void linked_turn_note_awaited(const struct region_card *card, bool is_awaited);

/* Whether a thread, which may be of another process, waits for work of a card that is linked with this one; `is_late`:
 * for work that should have ended. The caller holds LOCK_REGION. */
bool linked_turn_is_other_awaited(const struct region_card *card, bool is_late, uint64_t now);

/* Takes the closed card for one launch, which another card waits for; false: not now. `for_others`: what such launches
 * have taken since its last window. The caller holds LOCK_REGION. */
bool linked_turn_seize(struct region_card *card, uint32_t process, unsigned share, uint64_t for_others, uint64_t now);

/* The process has joined two cards, or parts all that it has joined. Take LOCK_REGION. */
void linked_turn_join(const uint8_t first[UUID_SIZE], const uint8_t second[UUID_SIZE]);
void linked_turn_part(void);

#endif
