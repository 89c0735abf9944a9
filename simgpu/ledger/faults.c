/* The file `fail` has lines `FUNCTION RESULTS [COUNT] [from=N] [percent=P] [seed=S]`. A line without more words applies
 * to every call; COUNT and `from` bound the calls by their number, `percent` lets it apply to some of them. RESULTS are
 * separated by commas. `seed` and the call's number decide whether the line applies and which result it gives.
 * FUNCTION@UUID is a function of one card, `*@UUID` every function of that card, `nvml*` every function of NVML. */
#include "ledger/faults.h"

#include <limits.h>
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

#define MAX_RESULTS 8

struct fault {
    char function[128];
    int results[MAX_RESULTS];
    unsigned result_count;
    unsigned from, end; /* numbers of the calls to which the line applies, as `from <= number < end` */
    unsigned percent;   /* of these calls */
    uint64_t seed;
};

static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULT_LINES];
static unsigned fault_count;
static uint64_t read_version;

static void parse_results(char *text, struct fault *out) {
    char *rest = NULL;
    for (const char *result = strtok_r(text, ",", &rest); result && out->result_count < MAX_RESULTS;
         result = strtok_r(NULL, ",", &rest))
        out->results[out->result_count++] = (int)strtol(result, NULL, 10);
}

static void parse_word(const char *word, struct fault *out) {
    const char *value = strchr(word, '=');
    if (!value)
        out->end = (unsigned)strtoul(word, NULL, 10);
    else if (strncmp(word, "from=", 5) == 0)
        out->from = (unsigned)strtoul(value + 1, NULL, 10);
    else if (strncmp(word, "percent=", 8) == 0)
        out->percent = (unsigned)strtoul(value + 1, NULL, 10);
    else if (strncmp(word, "seed=", 5) == 0)
        out->seed = strtoull(value + 1, NULL, 10);
}

/* Returns false for a line that names no function or no result. */
static bool parse(char *line, struct fault *out) {
    char *rest = NULL;
    const char *function = strtok_r(line, SPACE, &rest);
    char *results = !function ? NULL : strtok_r(NULL, SPACE, &rest);
    if (!results || strlen(function) >= sizeof out->function) return false;
    *out = (struct fault){.end = UINT_MAX, .percent = 100};
    (void)snprintf(out->function, sizeof out->function, "%s", function);
    parse_results(results, out);
    for (const char *word; (word = strtok_r(NULL, SPACE, &rest));) parse_word(word, out);
    return out->result_count != 0;
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

/* The number of this call among those of all processes that the line was asked about; UINT_MAX if it is unknown. */
static unsigned count_call(uint64_t version, unsigned line) {
    if (ledger_attach() != 0) return UINT_MAX;
    HOLD_STATE();
    if (state->fault_version != version) {
        state->fault_version = version;
        memset(state->fault_used, 0, sizeof state->fault_used);
    }
    return state->fault_used[line]++;
}

/* Pseudo-random bits that depend on both numbers only (splitmix64). */
static uint64_t mix(uint64_t seed, uint64_t number) {
    uint64_t bits = seed + (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* A line that applies to every call needs no count. */
static int result_of(const struct fault *fault, uint64_t version, unsigned line) {
    bool is_for_all = fault->from == 0 && fault->end == UINT_MAX && fault->percent >= 100 && fault->result_count == 1;
    if (is_for_all) return fault->results[0];
    unsigned number = count_call(version, line);
    uint64_t bits = mix(fault->seed, number);
    bool is_applied = number >= fault->from && number < fault->end && bits % 100 < fault->percent;
    return is_applied ? fault->results[(bits >> 32) % fault->result_count] : 0;
}

/* `nvml*` names each function of NVML, but no function of one card, so that a call is counted once. */
static bool is_named(const struct fault *fault, const char *function) {
    size_t length = strlen(fault->function);
    bool is_prefix = length > 1 && fault->function[length - 1] == '*' && !strchr(function, '@');
    return strcmp(fault->function, function) == 0 || (is_prefix && strncmp(fault->function, function, length - 1) == 0);
}

static int match(const char *function, uint64_t version) {
    int result = 0;
    for (unsigned i = 0; i < fault_count && result == 0; i++)
        if (is_named(&faults[i], function)) result = result_of(&faults[i], version, i);
    return result;
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

/* The result that `function` must return for one card, by a line FUNCTION@UUID or *@UUID; 0 = none. */
static int injected_for_card(const char *function, const char *uuid) {
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
    while ((result = uuid ? injected_for_card(function, uuid) : fault_injected(function)) == HANGS)
        nanosleep(&pause, NULL);
    return result;
}
