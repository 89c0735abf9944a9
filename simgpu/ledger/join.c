#include "ledger/join.h"

#include <errno.h>

#include "ledger/attach.h"
#include "ledger/card_time.h"
#include "ledger/mps_servers.h"
#include "ledger/shared_events.h"
#include "ledger/shared_memory.h"
#include "ledger/state.h"

/* Under the file's lock. The slot is cleared before it is claimed, so that a process that reads without the lock never
 * counts what a dead process left there. */
static int claim_free_slot(void) {
    for (int slot = 0; slot < SLOTS; slot++) {
        if (slot_is_alive(slot)) continue;
        state->slot[slot] = (struct slot){0};
        shared_memory_forget((uint32_t)slot);
        shared_events_forget((uint32_t)slot);
        mps_server_forget((uint32_t)slot);
        card_time_forget((uint32_t)slot);
        return slot_claim(slot);
    }
    return -ENOSPC;
}

int ledger_join(void) {
    int result = ledger_attach();
    if (result != 0) return result;
    HOLD_STATE();
    return own_slot >= 0 ? 0 : claim_free_slot();
}
