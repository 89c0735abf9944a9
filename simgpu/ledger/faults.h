/* Results that a test injects into functions of the simulated libraries. */
#ifndef SIMGPU_LEDGER_FAULTS_H
#define SIMGPU_LEDGER_FAULTS_H

/* The result that `function` must return instead of doing its work, as the file `fail` says; 0 = none. Counts the use
 * of a line with a limited count, over all processes. */
int fault_injected(const char *function);

/* The result that `function` must return, for one card if `uuid` is given, else NULL; 0 = none. Waits until the fault
 * is removed where its result is -1: the call hangs. */
int fault_awaited(const char *function, const char *uuid);

#endif
