/* This process's side of the accounts: what it charges and takes back. */
#ifndef VGPU_CHARGE_CHARGE_H
#define VGPU_CHARGE_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/pending_pool_ends.h"
#include "region/region.h"

/* How long a reservation waits for a holder of the region's lock that is stopped; then it is refused. */
enum { CHARGE_LOCK_MS = 50 };

/* A charge made ahead of the driver's call. */
struct reservation {
    int card; /* the region's row */
    uint64_t bytes;
    bool reaped; /* a dead process's charge was cleared for it: the driver may still be freeing that memory */
    int tries;   /* how often the driver was asked again for that */
};

/* Whether anybody limits this process. Where not, nothing is counted. */
bool charge_is_limited(void);

/* Bytes that the container may hold on this card: UNLIMITED, or 0 where the limits cannot be read or do not name it. */
uint64_t charge_limit(const uint8_t uuid[UUID_SIZE]);

/* Whether what exceeds a full card, within a limit, is to be served from managed memory. */
bool charge_may_spill(const uint8_t uuid[UUID_SIZE]);

/* The same, and the bytes that the container's living processes hold on this card; of one that died, up to 100 ms
 * longer. Without a limit nobody asks for them: then they are 0. */
struct usage_view {
    uint64_t limit;
    uint64_t used;
};
struct usage_view charge_view(const uint8_t uuid[UUID_SIZE]);

/* Bytes that the process of that pid, as this process knows it, holds on this card; false where it is none of the
 * container's that has ever used a card. */
bool usage_view_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes);

/* Takes this process's slot, and the card's row, where they are not there yet. */
void charge_join(const uint8_t uuid[UUID_SIZE]);

/* The span around a call that changes what this process holds, from before the driver's part until the account is made
 * right: in it what NVML says is not taken for what is to be charged. What the first returns is for the second. */
int charge_begin_call(void);
void charge_end_call(int call_slot);

/* The functions down to the next line are called in such a span, one of the caller's. */

/* Charges `bytes` if they fit at once. */
bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation);

/* In a span: gives back what is kept on a card without use; and corrects what is charged too much, too. */
void charge_trim_idle(const uint8_t uuid[UUID_SIZE]);
void charge_trim(const uint8_t uuid[UUID_SIZE]);

/* Charges `bytes`, after all that makes room; on refusal nothing is charged, and a line is logged that names `what`
 * asked. */
bool charge_reserve(const char *what, const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation);

/* Charges what the driver has given already, whether it fits or not. */
void charge_unconditionally(int card, uint64_t bytes);

/* Of what is charged, `bytes` are managed memory, which NVML does not count, or other memory that it does not; or does
 * again. */
void charge_mark_managed(int card, uint64_t bytes);
void charge_unmark_managed(int card, uint64_t bytes);

/* Takes a charge back. Never fails: where the lock cannot be had in time, the next one to have it catches up. */
void charge_release(int card, uint64_t bytes);
void charge_release_managed(int card, uint64_t bytes);

/* The same with the end of a pool that is shared, whose rows (shares.h) end at the same moment. */
void charge_end_pool(struct pending_pool_end end);

/* Counts an allocation that was served from managed memory. */
void charge_count_spill(int card, uint64_t bytes);

/* The functions from here on, anywhere. */

/* Takes back what waits for the lock, which the caller has. */
void charge_apply_deferred(struct region *region, int slot);

/* After an exec: the slot of this process's former image, whose memory the driver has freed, is cleared. */
void charge_clear_former_image(void);

/* In the child of a fork. */
void charge_forget(void);

#endif
