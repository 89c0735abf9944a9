/* The file `fail` has lines `FUNCTION RESULT [COUNT]`. A line without a count applies to every call. FUNCTION@UUID is a
 * function of one card, `*@UUID` every function of that card. */
#include "ledger/faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hardware/mutex.h"
#include "hardware/state_directory.h"
#include "ledger/attach.h"
#include "ledger/state.h"

#define SPACE         " \t\r\n"
#define HANGS         (-1) /* the result of a call that returns only when the fault has been removed */
#define HANG_PAUSE_NS 10000000

struct fault {
    char function[128];
    int result;
    unsigned limit;
    bool is_limited;
};

static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULT_LINES];
static unsigned fault_count;
static uint64_t read_version;

/* Returns false for a line that names no function or no result. */
static bool parse(char *line, struct fault *out) {
    char *rest = NULL;
    const char *function = strtok_r(line, SPACE, &rest);
    const char *result = !function ? NULL : strtok_r(NULL, SPACE, &rest);
    const char *limit = !result ? NULL : strtok_r(NULL, SPACE, &rest);
    if (!result || strlen(function) >= sizeof out->function) return false;
    (void)snprintf(out->function, sizeof out->function, "%s", function);
    out->result = (int)strtol(result, NULL, 10);
    out->is_limited = limit != NULL;
    out->limit = out->is_limited ? (unsigned)strtoul(limit, NULL, 10) : 0;
    return true;
}

static void read_faults(const char *path) {
    char line[256];
    FILE *file = fopen(path, "re");
    fault_count = 0;
    if (!file) return;
    /* NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): the file is local and short */
    while (fault_count < FAULT_LINES && fgets(line, sizeof line, file))
        fault_count += parse(line, &faults[fault_count]);
    (void)fclose(file);
}

/* Under faults_lock. */
static void refresh(uint64_t version, bool is_settled, const char *path) {
    if (version != read_version || !is_settled) {
        read_faults(path);
        read_version = version;
    }
}

/* Counts a use of the line; returns whether no more than `limit` uses were counted by all processes together. */
static bool count_use(uint64_t version, unsigned line, unsigned limit) {
    if (ledger_attach() != 0) return false;
    HOLD_STATE();
    if (state->fault_version != version) {
        state->fault_version = version;
        memset(state->fault_used, 0, sizeof state->fault_used);
    }
    bool is_counted = state->fault_used[line] < limit;
    state->fault_used[line] += is_counted;
    return is_counted;
}

static int match(const char *function, uint64_t version) {
    for (unsigned i = 0; i < fault_count; i++) {
        const struct fault *fault = &faults[i];
        if (strcmp(fault->function, function) != 0) continue;
        if (!fault->is_limited || count_use(version, i, fault->limit)) return fault->result;
    }
    return 0;
}

int fault_injected(const char *function) {
    char path[STATE_PATH_SIZE];
    bool is_settled;
    state_directory_path(path, "fail");
    uint64_t version = file_version(path, &is_settled);
    if (version == 0) return 0;
    HOLD_MUTEX(faults_lock);
    refresh(version, is_settled, path);
    return match(function, version);
}

int fault_injected_for(const char *function, const char *uuid) {
    char name[128];
    (void)snprintf(name, sizeof name, "%s@%s", function, uuid);
    int result = fault_injected(name);
    if (result != 0) return result;
    (void)snprintf(name, sizeof name, "*@%s", uuid);
    return fault_injected(name);
}

int fault_awaited(const char *function, const char *uuid) {
    const struct timespec pause = {.tv_nsec = HANG_PAUSE_NS};
    int result;
    while ((result = uuid ? fault_injected_for(function, uuid) : fault_injected(function)) == HANGS)
        nanosleep(&pause, NULL);
    return result;
}
