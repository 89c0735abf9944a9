/* How this process gets a turn on one card: it waits for the container's token bucket, which it shares with the other
 * processes of the container (token_bucket.h), and on a contended card also for a turn of the arbiter's
 * (arbiter_turn.h). No other module knows where a turn comes from. */
#ifndef VGPU_COMPUTE_LINK_TURN_REQUEST_H
#define VGPU_COMPUTE_LINK_TURN_REQUEST_H

#include "compute/link/arbiter_turn.h"
#include "compute/link/linked_turn.h"
#include "compute/turn/turn_limits.h"
#include "region/region.h"

/* The fields belong to the thread that owns the gate (gate_machine.h), or that holds LOCK_GATE while the gate is open.
 * `link` has a lock of its own; any thread reads what is atomic, at any time. */
struct turn_request {
    uint8_t uuid[UUID_SIZE];  /* of the card; never changes */
    struct region_card *card; /* atomic; the card's row in the region; NULL before the first turn, or if the region has
                                 no row left */
    struct region_activity *activity; /* atomic; the card's counters in the region; NULL with `card` */
    uint32_t holder_id;               /* what this process writes as the row's `holder` */
    uint32_t ticket;                  /* place in the token bucket's queue while the process waits; 0 = none */
    unsigned share; /* percent, as of the turn's beginning; 100 = only the arbiter limits it, 0 = nothing does */
    const struct region_card *linked_card; /* atomic; `card` if it opens and closes with other ones (linked_turn.h), as
                                              of the turn's beginning; NULL: alone */
    bool is_in_window;                     /* the turn is a window of linked cards */
    uint32_t batches;                      /* that were admitted in it */
    bool has_one_launch;                   /* the turn is for one launch, which another linked card waits for */
    uint64_t uncharged_ns; /* atomic; GPU time used but not yet charged, because LOCK_REGION could not be taken in time,
                              or another thread owned the request */
    struct arbiter_turn arbiter_turn;
    struct arbiter_link link;
};

/* Whether launches on the card need turns: the container has a fixed share of it (`has_share`), or the page says that
 * the card is contended. One load from memory. */
bool turn_request_is_needed(const struct turn_request *request, bool has_share);

/* Connects to the arbiter where that is due and, while there is a connection, marks the card as used in the region, as
 * a turn would do. Called periodically. Takes LOCK_ARBITER_LINK if it is free, LOCK_CONTAINER and LOCK_REGION. */
void turn_request_update(struct turn_request *request);

/* A launch that waits for a turn while its process may have work on a card that waits for it. */
struct early_request {
    uint64_t need; /* GPU time of the launch */
    unsigned gate; /* index of the gate that it waits at */
    bool (*is_work_elsewhere)(unsigned gate);
    bool (*is_at_work_elsewhere)(unsigned gate, bool is_late); /* the driver says so; `is_late`: work that should have
                                                                  ended */
    uint64_t loan; /* out: GPU time that is lent to the launch, which has no turn; 0 = it has one */
};

/* Waits for the turn and returns its limits. `early`: while there is work elsewhere, the wait for tokens may end with a
 * loan, and on a linked card, while work is late there, with a turn of one launch. NULL = never. Returns without a turn
 * if nothing limits the process any more, LOCK_REGION cannot be taken, or the arbiter gives no turn within 20 s; so
 * launches are delayed but never fail. Takes LOCK_REGION and LOCK_ARBITER_LINK; the caller owns the gate and holds no
 * lock. */
struct turn_limits turn_request_take(struct turn_request *request, struct early_request *early);

/* The work of a turn that was given back stays on the card, beside the turns of others. Asks for a turn for it, without
 * waiting, and takes it when the arbiter has given it: called again and again until the work has drained. The caller
 * owns the gate. Takes LOCK_ARBITER_LINK, and LOCK_REGION. */
void turn_request_resume(struct turn_request *request);

/* When the card is expected to be free for the turn, CLOCK_MONOTONIC in ns; 0 = now. */
uint64_t turn_request_free_at(const struct turn_request *request);

/* Whether turn_request_take would find a turn of the arbiter's, as far as the arbiter is concerned. */
bool turn_request_is_at_hand(const struct turn_request *request);

/* Whether the turn is one of the arbiter's. */
bool turn_request_is_arbitrated(const struct turn_request *request);

/* Whether the turn is held jointly with clients of other containers, and nothing else limits it. */
bool turn_request_is_joint(const struct turn_request *request);

/* Whether the arbiter asks the turn back, or has taken it. */
bool turn_request_is_asked_to_yield(const struct turn_request *request);

/* Whether the turn, which may be a window of linked cards, admits one more launch after `used` ns of them. `fits`: its
 * budget has room. Takes no lock. Called by the thread that launches. */
enum linked_verdict turn_request_judge_linked(const struct turn_request *request, uint64_t used, bool fits,
                                              uint64_t now);

/* That thread's launch was admitted, by this verdict; with it the turn has `used` ns. Takes no lock. */
void turn_request_note_linked(struct turn_request *request, uint64_t used, enum linked_verdict verdict, uint64_t now);

/* Whether the card opens and closes with other ones (linked_turn.h), as of the turn's beginning. */
bool turn_request_is_linked(const struct turn_request *request);

/* A thread begins to wait for the work of the turn, or has waited for it, which other linked cards may want to know.
 * Takes no lock. */
void turn_request_note_linked_wait(const struct turn_request *request, bool is_begun);

/* Writes into the region that the turn is needed until `until`, CLOCK_MONOTONIC in ns. Takes no lock. */
void turn_request_extend(struct turn_request *request, uint64_t until);

/* Writes into the region that a thread waits for the turn's work, which may last until `until`, CLOCK_MONOTONIC in ns;
 * 0: no thread waits. Takes no lock. */
void turn_request_note_awaited(struct turn_request *request, uint64_t until);

/* Whether the arbiter's turn has no budget and the tokens suffice for another turn after this one, which is expected to
 * be charged `expected` ns: then the arbiter's turn goes on. */
bool turn_request_is_unbounded(const struct turn_request *request, uint64_t expected);

/* Gives the arbiter's turn back: nothing more is launched in it, and its work is expected to drain in `rest` ns.
 * `is_awaited`: a thread waits for the work, and turn_request_note_drained will be called. Takes LOCK_ARBITER_LINK. */
void turn_request_give_back(struct turn_request *request, uint64_t rest, bool is_awaited);

/* Asks the arbiter for the next turn before this one is charged, unless the expected charge of `expected` ns empties
 * the token bucket: then the process has to wait for tokens first. Takes LOCK_ARBITER_LINK. */
void turn_request_ask_next(struct turn_request *request, uint64_t expected);

/* Ends the turn and charges the token bucket with `cost` ns of GPU time. If turn_request_give_back was not called, what
 * is left of the arbiter's turn is used by the next turn. Takes LOCK_REGION; if that fails, the time is charged with
 * the next turn. Takes LOCK_ARBITER_LINK. */
void turn_request_end(struct turn_request *request, uint64_t cost);

/* Lends GPU time of the overdraft for a launch that needs `need` ns; 0 = there is not enough. `is_urgent`: a full
 * overdraft is enough. Takes LOCK_REGION; if that fails, the launch is delayed no longer. */
uint64_t turn_request_borrow(struct turn_request *request, uint64_t need, bool is_urgent);

/* Ends loans of `lent` ns together, of which `used` were used. Takes LOCK_REGION. */
void turn_request_return_loan(const struct turn_request *request, uint64_t lent, uint64_t used);

/* Charges the token bucket with the `cost` of a turn that was given back, or that goes on, before its work had drained.
 * Takes LOCK_REGION; if that fails, the time is charged with the next turn. */
void turn_request_charge(struct turn_request *request, uint64_t cost);

/* Like turn_request_charge, at the next charge of the thread that owns the request. Takes no lock; any thread may call
 * it. */
void turn_request_charge_later(struct turn_request *request, uint64_t cost);

/* The work of the turn that was given back last has drained: tells the arbiter if that is earlier than announced. Takes
 * LOCK_ARBITER_LINK. */
void turn_request_note_drained(struct turn_request *request);

/* Waits for at most `ns` for a turn that turn_request_ask_next asked for; whether it is there. */
bool turn_request_await_next(struct turn_request *request, uint64_t ns);

/* Counts a launch that waited `ns` in the region's statistics. Takes no lock; any thread may call it. */
void turn_request_count_wait(const struct turn_request *request, uint64_t ns);

/* The card's counters in the region; NULL as `activity`. Any thread may call it. */
struct region_activity *turn_request_activity(const struct turn_request *request);

#endif
