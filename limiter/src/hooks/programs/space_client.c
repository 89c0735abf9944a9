#include "hooks/programs/space_client.h"

#include "common/environment.h"
#include "common/log.h"
#include "common/sm_percentage.h"
#include "common/text.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "process/lock.h"
#include "region/identity.h"

#define PIPE_DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define PERCENTAGE     "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

enum { DIRECTORY_DIGITS = 16, PERCENTAGE_SIZE = sizeof "100" };

/* Guarded by LOCK_SPACE_CLIENT. The program's own percentage is what the environment says before this library writes to
 * it, so that a second cuInit, after one that failed, is not bound by the first one's part. */
static unsigned own_percentage;
static bool is_own_known;
static bool is_initialized; /* the driver has read the environment */

/* The process's slot, claimed where it has none; -1 where there is none. */
static int claim_slot(struct region *region) {
    (void)container_self();
    {
        HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
        if (locked) container_claim_slot(locked);
    }
    return container_slot(region);
}

/* The slot is claimed before the processes are counted, so of processes that start at once each one counts the others.
 */
static unsigned living_processes(void) {
    struct region *region = container_region();
    if (!region) return 1; /* every allocation is refused */
    bool has_slot = claim_slot(region) >= 0;
    struct identity self = container_self();
    unsigned living = identity_count_living(region, &self);
    return has_slot ? living : living + 1;
}

/* For the device plugin, which reports it. */
static void note_outside_group(bool is_outside) {
    struct region *region = container_region();
    int slot = region ? claim_slot(region) : -1;
    if (slot >= 0) __atomic_store_n(&region->slots[slot].is_outside_group, is_outside, __ATOMIC_RELAXED);
}

static bool set_percentage(unsigned cap) {
    char text[PERCENTAGE_SIZE] = "";
    if (!is_own_known) own_percentage = sm_percentage_named(environment_find(PERCENTAGE));
    is_own_known = true;
    unsigned part = sm_percentage_of_process(cap, own_percentage, living_processes());
    if (part == own_percentage && part == sm_percentage_named(environment_find(PERCENTAGE))) return true;
    return environment_set(PERCENTAGE, text_append_number(text, part));
}

bool space_client_prepare(void) {
    struct space_limits space = container_space();
    if (!space.directory) return true;
    HOLD_LOCK(LOCK_SPACE_CLIENT);
    if (is_initialized) return true;
    if (!environment_set(PIPE_DIRECTORY, space.directory)) return false;
    return !space.sm_percentage || set_percentage(space.sm_percentage);
}

/* The group by the name of its directory on the node, which administrators can look up. */
static void write_group(const struct space_limits *space, char out[DIRECTORY_DIGITS + 1]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < DIRECTORY_DIGITS; i++) {
        uint8_t byte = space->group[i / 2];
        out[i] = digits[i % 2 ? byte & 15 : byte >> 4];
    }
}

/* NULL where the error has nothing to do with MPS. */
static const char *reason_of(CUresult result) {
    switch (result) {
        case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
        case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
            return "the group is full: its MPS server serves as many processes as it can";
        case CUDA_ERROR_MPS_SERVER_NOT_READY:
            return "the group's MPS server ends or is starting";
        case CUDA_ERROR_MPS_CONNECTION_FAILED:
        case CUDA_ERROR_MPS_RPC_FAILURE:
        case CUDA_ERROR_MPS_CLIENT_TERMINATED:
            return "the group's MPS server has failed";
        default:
            return NULL;
    }
}

/* A driver without the attribute has no MPS that could be joined. */
static bool is_client(void) {
    int is_enabled = 0;
    CUdevice first = 0;
    return REAL(cuDeviceGetAttribute)(&is_enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, first) == CUDA_SUCCESS &&
           is_enabled;
}

static void note_initialized(void) {
    HOLD_LOCK(LOCK_SPACE_CLIENT);
    is_initialized = true;
}

void space_client_explain(const char *function_name, CUresult result) {
    struct space_limits space = container_space();
    const char *reason = space.directory ? reason_of(result) : NULL;
    char group[DIRECTORY_DIGITS + 1] = "";
    if (!reason) return;
    write_group(&space, group);
    log_warn("%s: no client of group %s in space: %s (error %d)", function_name, group, reason, (int)result);
}

static void conclude_success(const struct space_limits *space) {
    char group[DIRECTORY_DIGITS + 1] = "";
    bool is_member = is_client();
    note_initialized();
    note_outside_group(!is_member);
    if (is_member) {
        container_note_space_client();
        return;
    }
    write_group(space, group);
    log_warn("cuInit: no client of group %s in space: no MPS daemon in %s; the process takes turns instead", group,
             space->directory);
}

void space_client_conclude(CUresult result) {
    struct space_limits space = container_space();
    if (!space.directory) return;
    if (result == CUDA_SUCCESS)
        conclude_success(&space);
    else
        space_client_explain("cuInit", result);
}
