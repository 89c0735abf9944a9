#include "compute/link/launch_batch.h"

#include "common/arithmetic.h"

/* A thread that has launched on one card only for this long has no batches. */
#define LONGEST_BATCH (2000 * NS_PER_MS)

static __thread struct {
    uint64_t changed_at; /* when the thread last launched on another card than before; 0 = it never did */
    unsigned card;       /* of the last launch: number + 1 */
} last;

void launch_batch_note(unsigned card, uint64_t now) {
    if (last.card == card + 1) return;
    if (last.card) last.changed_at = now;
    last.card = card + 1;
}

bool launch_batch_goes_on(unsigned card, uint64_t now) {
    return last.card == card + 1 && last.changed_at && now < last.changed_at + LONGEST_BATCH;
}
