/* Memory of the card with index 0, as CUDA and NVML report it. */
#ifndef BENCH_CARD_USAGE_H
#define BENCH_CARD_USAGE_H

#include <stdbool.h>
#include <sys/types.h>

/* Bytes in use: by cuMemGetInfo (0 without a current context); by NVML, of the card and of one process. */
struct card_usage {
    long long context, card, process;
};

/* Opens NVML; false where the machine has none. */
bool card_usage_open(void);

struct card_usage card_usage_now(pid_t process);

/* Bytes as MiB, for a table. */
double card_usage_mib(long long bytes);

#endif
