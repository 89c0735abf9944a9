/* Becoming a process of the ledger. */
#ifndef SIMGPU_LEDGER_JOIN_H
#define SIMGPU_LEDGER_JOIN_H

/* Gives this process a slot, unless it has one. Returns 0 or a negative errno. */
int ledger_join(void);

#endif
