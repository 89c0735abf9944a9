/* The model charges before a call, NVML corrects after it: what NVML says of a process, and its managed memory, is what
 * the process holds. See docs/adr/0013. */
#ifndef VGPU_CHARGE_RECONCILE_H
#define VGPU_CHARGE_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

/* Sets this process's charge on a card to what it holds. `own` is how many calls that change it the caller has under
 * way, whose driver's part is over. False where nobody can say: without NVML, or while other threads are in such calls.
 */
bool reconcile_own(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* One try of it, where a later one does as well. */
bool reconcile_once(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* The same, and every other process's of the container that we can see. */
bool reconcile_all(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* Every other process's, on every card: before memory that they may share is taken off here. */
void reconcile_others(void);

/* `reconcile_all` on every card that the container uses. */
void reconcile_every_card(unsigned own_calls);

/* One try of `reconcile_own`, or with the `others`, where the last one is long enough ago: 10 ms, and up to 100 as long
 * as they find nothing new; and so long that all of them take no more than 0.5 % of the time. Whether it was made, and
 * said something. */
bool reconcile_if_due(const uint8_t uuid[UUID_SIZE], unsigned own_calls, bool with_others);

/* Something was done that may have taken memory without a word: the next of those is due as soon as it may be. */
void reconcile_soon(void);

#endif
