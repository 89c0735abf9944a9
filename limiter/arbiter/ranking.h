/* Who goes before whom. Pure. */
#ifndef VGPU_ARBITER_RANKING_H
#define VGPU_ARBITER_RANKING_H

#include "tenant.h"

/* Strict: one of a later class goes only where none of an earlier one waits, but for the floor in schedule.h. */
enum class {
    CLASS_WITHIN_GUARANTEE, /* behind its guarantee */
    CLASS_BURST,            /* may use what is left */
    CLASS_OVER_FIXED_SHARE, /* a fixed share that held more than it: only to save the card from standing idle */
    CLASS_BEST_EFFORT,      /* best effort, within the watermark */
    CLASS_OVER_WATERMARK,   /* best effort beyond it */
};

/* `has_room`: best effort is within the watermark. */
enum class ranking_class(const struct tenant *tenant, bool is_best_effort_allowed);

/* Whether one's class or, within it, priority is higher. */
bool ranking_outranks(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed);

/* Whether it comes before the other in every respect: rank, within the guarantee who is hasty, then pace, then who
 * waits for longer. */
bool ranking_is_before(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed);

#endif
