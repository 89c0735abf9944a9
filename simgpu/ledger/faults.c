/* Failures a test asks for: lines `FUNCTION RESULT [COUNT]` of the file `fail`; without a count, every call. */
#define _GNU_SOURCE
#include "hardware/simgpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAX_FAULTS 64

typedef struct {
    char function[64];
    int result;
    unsigned limit;
    bool limited;
} Fault;

static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static Fault faults[MAX_FAULTS];
static unsigned fault_count;
static uint64_t read_version;

static void read_faults(const char *path) {
    char line[256];
    FILE *file = fopen(path, "re");
    fault_count = 0;
    if (file == NULL) {
        return;
    }
    while (fault_count < MAX_FAULTS && fgets(line, sizeof line, file) != NULL) {
        Fault *fault = &faults[fault_count];
        int fields = sscanf(line, "%63s %d %u", fault->function, &fault->result, &fault->limit);
        fault->limited = fields == 3;
        fault_count += fields >= 2;
    }
    (void)fclose(file);
}

/* Under faults_lock. */
static void refresh(uint64_t version, bool settled, const char *path) {
    if (version != read_version || !settled) {
        read_faults(path);
        read_version = version;
    }
}

static int match(const char *function, uint64_t version) {
    for (unsigned i = 0; i < fault_count; i++) {
        const Fault *fault = &faults[i];
        if (strcmp(fault->function, function) != 0) {
            continue;
        }
        if (!fault->limited || ledger_count_fault(version, i, fault->limit)) {
            return fault->result;
        }
    }
    return 0;
}

int sim_fault(const char *function) {
    char path[SIM_PATH_SIZE];
    bool settled;
    sim_path(path, "fail");
    uint64_t version = sim_file_version(path, &settled);
    if (version == 0) {
        return 0;
    }
    (void)pthread_mutex_lock(&faults_lock);
    refresh(version, settled, path);
    int result = match(function, version);
    (void)pthread_mutex_unlock(&faults_lock);
    return result;
}
