/* Wrappers of checkpoints (CUDA 12.8). A process is locked, checkpointed, restored and unlocked, by itself or by
 * another process. While it is checkpointed it holds nothing on a card, and takes the same again when it is restored.
 * So its charges stay as they are from the lock to the end of the lock. */
#include <string.h>

#include "common/log.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "region/account.h"

/* False where no charges of the process are known: it is not of this container, or in another pid namespace. */
static bool freeze(int pid, bool is_frozen) {
    struct region *region = container_region();
    return region && account_freeze(region, (uint32_t)pid, container_self().namespace, is_frozen);
}

static CUresult refuse(const char *function_name, int pid, const char *reason, CUresult result) {
    log_warn("%s refused for process %d: %s", function_name, pid, reason);
    return result;
}

EXPORT CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *arguments) {
    bool is_frozen = container_is_limited() && freeze(pid, true);
    CUresult result = REAL(cuCheckpointProcessLock)(pid, arguments);
    if (is_frozen && result != CUDA_SUCCESS) freeze(pid, false);
    return result;
}

EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *arguments) {
    if (container_is_limited() && !freeze(pid, true))
        return refuse("cuCheckpointProcessCheckpoint", pid,
                      "its memory is not charged here, so it could not be restored", CUDA_ERROR_NOT_SUPPORTED);
    return REAL(cuCheckpointProcessCheckpoint)(pid, arguments);
}

static bool is_on_other_card(const CUcheckpointRestoreArgs *arguments) {
    for (unsigned i = 0; arguments && arguments->gpuPairs && i < arguments->gpuPairsCount; i++) {
        const CUcheckpointGpuPair *pair = &arguments->gpuPairs[i];
        if (memcmp(&pair->oldUuid, &pair->newUuid, sizeof pair->oldUuid) != 0) return true;
    }
    return false;
}

EXPORT CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *arguments) {
    if (!container_is_limited()) return REAL(cuCheckpointProcessRestore)(pid, arguments);
    if (is_on_other_card(arguments))
        return refuse("cuCheckpointProcessRestore", pid, "it is charged on another card", CUDA_ERROR_NOT_SUPPORTED);
    if (!freeze(pid, true))
        return refuse("cuCheckpointProcessRestore", pid, "its memory is not charged here", CUDA_ERROR_OUT_OF_MEMORY);
    return REAL(cuCheckpointProcessRestore)(pid, arguments);
}

EXPORT CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *arguments) {
    CUresult result = REAL(cuCheckpointProcessUnlock)(pid, arguments);
    if (result == CUDA_SUCCESS && container_is_limited()) freeze(pid, false);
    return result;
}
