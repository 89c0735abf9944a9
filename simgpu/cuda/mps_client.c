#include "cuda/mps_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"
#include "hardware/clock.h"
#include "ledger/mps_servers.h"
#include "mps/pipe/pipe.h"

#define RETRY_NS UINT64_C(10000000)

/* The percentage that the environment names; 0 where it names none. */
static unsigned own_percentage(void) {
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percentage = text ? strtod(text, NULL) : 0;
    return percentage > 0 && percentage <= 100 ? (unsigned)(percentage + 0.999) : 0;
}

/* False when the daemon names no server, because it ends. */
static bool read_server(const char *answer, uint64_t *server, struct mps_limits *limits) {
    if (strncmp(answer, PIPE_SERVER, sizeof PIPE_SERVER - 1) != 0) return false;
    char *rest;
    *server = strtoul(answer + sizeof PIPE_SERVER - 1, &rest, 10);
    limits->percentage = (uint32_t)strtoul(rest, &rest, 10);
    limits->bytes = strtoul(rest, NULL, 10);
    return true;
}

static int join(void) {
    char line[32];
    char answer[128];
    uint64_t server;
    struct mps_limits limits;
    (void)snprintf(line, sizeof line, PIPE_CLIENT, own_percentage());
    if (!pipe_ask(line, answer, sizeof answer)) return 0;
    return read_server(answer, &server, &limits) ? mps_client_join(server, limits) : -ESHUTDOWN;
}

CUresult mps_client_connect(void) {
    int result;
    while ((result = join()) == -ENOENT) driver_sleep_until(clock_now_ns() + RETRY_NS);
    if (result == -EUSERS) return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
    return result == 0 ? CUDA_SUCCESS : CUDA_ERROR_MPS_SERVER_NOT_READY;
}
