/* Whether the tenants of a card take turns one after the other ("apart") or hold turns at the same moment ("jointly"),
 * so that the card's own time slices decide. Turns apart are better for tenants that keep the card busy. Jointly, one
 * tenant's kernels run while another's host prepares the next ones. Nothing is assumed about the programs: what their
 * kernels do in the one way is compared with what they do in the other (docs/adr/0153).
 *
 * Pure: the figures and the clock (`now`, CLOCK_MONOTONIC in ns) are arguments. Times are in ns. */
#ifndef VGPU_ARBITER_SCHEDULE_JOINT_MODE_H
#define VGPU_ARBITER_SCHEDULE_JOINT_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arithmetic.h"

/* How long a trial is measured. */
#define JOINT_TRIAL (400 * NS_PER_MS)

enum joint_phase {
    JOINT_APART,  /* turns one after the other */
    JOINT_DRAINS, /* jointly, for a trial: what was launched before still runs */
    JOINT_TRIED,  /* likewise, and it is measured */
    JOINT_HELD,   /* jointly, because that was better */
};

struct joint_mode {
    enum joint_phase phase;
    uint64_t since;          /* when the phase began */
    uint64_t measured_since; /* when the present measurement began */
    uint64_t retry_at;       /* no trial before */
    uint64_t pause;          /* from a trial that failed to the next one; 0 = none has failed */
    uint64_t hold;           /* how long turns are held jointly before the other way is measured again; 0 = not known */
    uint32_t apart_permille; /* of the card's time, that kernels took when the turns were last apart */
    uint32_t joint_permille; /* likewise when turns were held jointly and that was found better */
    bool is_saturated;       /* when turns were last apart, a tenant waited for half of the time or more */
    bool is_first;   /* programs load kernels in their first requests, so the present measurement says nothing */
    bool is_harmful; /* in the last trial a tenant was slower */
    bool is_worse;   /* in the last measurement of turns that are held jointly, a tenant was worse off than apart */
};

/* What was measured since `measured_since`. */
struct joint_figures {
    uint64_t used_ns;      /* GPU time of all tenants' kernels */
    uint64_t wanted_ns;    /* time in which a tenant had or wanted a turn; only if turns are apart */
    uint64_t contested_ns; /* time in which a client waited for a turn; only if turns are apart */
    bool is_possible;      /* no active tenant forbids it */
    bool has_newcomer;     /* a tenant became active, so what was measured before says nothing */
    bool is_any_at_risk;   /* a tenant within its guarantee asks for something, beside one that has more than its own */
    bool is_any_slower;    /* a tenant within its guarantee waits longer for the same work than apart, beside one that
                            * has more than its own; if joint. In the first JOINT_TRIAL: so much longer that the rest
                            * of them cannot change it */
    bool is_any_unseen;    /* one that waited apart has not waited yet; likewise */
    bool is_any_behind;    /* a tenant has less than it had apart and than is guaranteed to it; likewise */
};

enum joint_change {
    JOINT_GOES_ON,
    JOINT_MEASURES, /* the next measurement begins */
    JOINT_BEGINS,   /* turns are held jointly from now on, and the next measurement begins */
    JOINT_ENDS,     /* turns are apart from now on, and the next measurement begins */
};

/* Whether turns are held jointly. */
bool joint_mode_is_on(const struct joint_mode *mode);

/* What changes now. Called every few milliseconds. */
enum joint_change joint_mode_step(struct joint_mode *mode, const struct joint_figures *figures, uint64_t now);

#endif
