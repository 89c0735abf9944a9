/* The verb `info`. */
#ifndef PROBE_INFO_H
#define PROBE_INFO_H

#include <stdbool.h>

/* Prints one line with all devices, or an error. Returns the exit code. */
int info(bool by_proc);

#endif
