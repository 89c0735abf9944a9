/* Opening the ledger of the current state directory. */
#ifndef SIMGPU_LEDGER_ATTACH_H
#define SIMGPU_LEDGER_ATTACH_H

#include <stdbool.h>

/* Maps the ledger of the current state directory. A process that has joined stays with its ledger; any other follows
 * SIMGPU_STATE when it changes, as tests in one process do. Returns 0 or a negative errno. */
int ledger_attach(void);

/* Whether this process is a child of fork whose parent had joined: then its driver is unusable, as a real one is. */
bool ledger_is_forked(void);

#endif
