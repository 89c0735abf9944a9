/* Results that a test injects into functions of the simulated libraries. */
#ifndef LEDGER_FAULTS_H
#define LEDGER_FAULTS_H

/* The result that `function` must return instead of doing its work, as the file `fail` says; 0 = none. Counts the use
 * of a line with a limited count, over all processes. */
int fault_injected(const char *function);

#endif
