/* The lock of a card's time line, which survives the death of its holder. */
#ifndef SIMGPU_LEDGER_CARD_LOCK_H
#define SIMGPU_LEDGER_CARD_LOCK_H

#include "ledger/state.h"

/* Who takes several takes them in the order of the cards. */
void card_lock(struct card_time *card);
void card_unlock(struct card_time *card);

#endif
