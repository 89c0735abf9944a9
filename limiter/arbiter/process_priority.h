/* The arbiter's own scheduling priority. While it waits for a processor, so do all programs on the card. */
#ifndef VGPU_ARBITER_PROCESS_PRIORITY_H
#define VGPU_ARBITER_PROCESS_PRIORITY_H

/* Takes real-time priority (SCHED_RR) if permitted, else nice -20 if permitted. The kernel sends SIGXCPU if the arbiter
 * ever runs for 0.2 s without a pause at real-time priority; its work takes microseconds. */
void process_priority_raise(void);

/* Gives up real-time priority for nice -20: the answer to SIGXCPU. */
void process_priority_lower(void);

#endif
