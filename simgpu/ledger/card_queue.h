/* What names a queue of a card's time line, and a collective. */
#ifndef SIMGPU_LEDGER_CARD_QUEUE_H
#define SIMGPU_LEDGER_CARD_QUEUE_H

#include <stdint.h>

/* A queue of a context on its card: one of its hardware channels. */
struct card_queue {
    int card; /* index in the ledger */
    uint32_t number;
    uint64_t id; /* 0 = not open */
};

/* Which kernels belong to one collective: those with the same key. */
struct collective_key {
    uint64_t group; /* a number that its ranks chose */
    uint64_t round;
    uint32_t ranks; /* 1 to COLLECTIVE_RANKS */
};
#define COLLECTIVE_RANKS 16

#endif
