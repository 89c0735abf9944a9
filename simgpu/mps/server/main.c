/* nvidia-cuda-mps-server: a process of the ledger whose clients share its time slices. Only the daemon starts it. It
 * does nothing itself, and ends by a signal: its clients fail then. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "ledger/join.h"
#include "ledger/mps_servers.h"

/* Writes its id to the descriptor that the argument names. */
int main(int count, char **arguments) {
    int out = count > 1 ? (int)strtol(arguments[1], NULL, 10) : -1;
    uint64_t id = ledger_join() == 0 ? mps_server_open() : 0;
    if (id == 0 || write(out, &id, sizeof id) != (ssize_t)sizeof id) return 1;
    close(out);
    for (;;) pause();
}
