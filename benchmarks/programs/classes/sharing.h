/* Memory that another process has taken. What is needed to open it is handed over as text of hexadecimal digits. */
#ifndef BENCH_SHARING_H
#define BENCH_SHARING_H

#include "classes.h"

enum { TOKEN_SIZE = 512 };

/* Makes the token of a holding, for "ipc" (memory by pointer), "fd" (by handle) or "pool" (of the class "shareable
 * pool"). */
bool share_out(const char *how, const struct holding *held, char token[TOKEN_SIZE]);

/* The class whose `take` opens what is named by the token; NULL for an unknown way. */
const struct class *share_in(const char *how, const char *token);

#endif
