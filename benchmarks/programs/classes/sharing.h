/* Memory that another process has allocated. A token in hexadecimal digits identifies the memory. */
#ifndef BENCH_SHARING_H
#define BENCH_SHARING_H

#include "classes.h"

enum { TOKEN_SIZE = 512 };

/* Writes the token of a holding. The ways are "ipc" for memory by pointer, "fd" for memory by handle, and "pool" for
 * memory of the class "shareable pool". */
bool share_out(const char *how, const struct holding *held, char token[TOKEN_SIZE]);

/* The class whose `take` opens the memory of the token; NULL for an unknown way. */
const struct class *share_in(const char *how, const char *token);

#endif
