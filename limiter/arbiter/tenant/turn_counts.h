/* What a tenant's turns did, for the debug log. No decision depends on it. */
#ifndef VGPU_ARBITER_TENANT_TURN_COUNTS_H
#define VGPU_ARBITER_TENANT_TURN_COUNTS_H

#include <stdint.h>

struct turn_counts {
    uint64_t turns;      /* that have ended */
    uint64_t asked_back; /* of these, that were asked to yield */
    uint64_t drain_ns;   /* of those, from the request to yield to the end; a group's is over with its last member */
    uint64_t longest_drain_ns; /* the longest of these times */
    uint64_t dones;            /* DONE messages; each client of a group that holds its turn sends one */
    uint64_t busy_dones;       /* of these, that announced work which goes on */
    uint64_t rest_ns;          /* for how long it was to go on, as announced */
};

/* A turn that was asked back at `asked_back_at`, 0 = it was not, has ended. */
void turn_counts_note_end(struct turn_counts *counts, uint64_t asked_back_at, uint64_t ended);

/* A client said that it is done, and that its work drains in `rest` ns. */
void turn_counts_note_done(struct turn_counts *counts, uint64_t rest);

#endif
