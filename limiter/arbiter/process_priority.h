/* The arbiter before other programs: all of a card's programs wait while it waits for a processor. */
#ifndef VGPU_ARBITER_PROCESS_PRIORITY_H
#define VGPU_ARBITER_PROCESS_PRIORITY_H

/* Takes a priority of real time where that is allowed, else the highest usual one where that is. What we do takes
 * microseconds; should it ever take a fifth of a second at a stretch the kernel sends SIGXCPU. */
void process_priority_raise(void);

/* Gives the one of real time up for the highest usual one. */
void process_priority_lower(void);

#endif
