/* A thread that launches for several linked cards does so in batches: some launches on one card, then some on another.
 * A card that closed in the middle of a batch would hold the other cards' batches back, and their collectives with
 * them. */
#ifndef VGPU_COMPUTE_LINK_LAUNCH_BATCH_H
#define VGPU_COMPUTE_LINK_LAUNCH_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread has launched on the card with this number. */
void launch_batch_note(unsigned card, uint64_t now);

/* Whether the calling thread, whose next launch is on this card, is in the middle of a batch. */
bool launch_batch_goes_on(unsigned card, uint64_t now);

#endif
