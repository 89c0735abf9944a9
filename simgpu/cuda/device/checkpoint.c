/* Checkpoints, as documented: a checkpointed process holds nothing on its cards, and takes the same again when it is
 * restored. A process can checkpoint itself only, and its other functions are not blocked meanwhile. */
#include <unistd.h>

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"
#include "ledger/accounts.h"

static CUprocessState state = CU_PROCESS_STATE_RUNNING;
static uint64_t parked[MAX_CARDS]; /* bytes of each device while the process is checkpointed */

static uint64_t own_bytes(CUdevice device) {
    static struct ledger_process found[MAX_PROCESSES];
    unsigned count = ledger_processes(device_at(device)->uuid, found, MAX_PROCESSES);
    for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++)
        if (found[i].pid == (unsigned)getpid()) return found[i].bytes;
    return 0;
}

static CUresult restore(void) {
    CUdevice device = 0;
    CUresult result = CUDA_SUCCESS;
    while (device < device_count() && (result = device_charge(device, parked[device])) == CUDA_SUCCESS) device++;
    for (CUdevice undone = 0; result != CUDA_SUCCESS && undone < device; undone++)
        device_release(undone, parked[undone]);
    return result;
}

static CUresult move(int pid, CUprocessState from, CUprocessState into) {
    if (pid != getpid()) return CUDA_ERROR_NOT_SUPPORTED;
    if (state != from) return CUDA_ERROR_ILLEGAL_STATE;
    state = into;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCheckpointProcessGetState(int pid, CUprocessState *out) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (pid != getpid() || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = state;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *arguments) {
    (void)arguments;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return move(pid, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED);
}

EXPORT CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *arguments) {
    (void)arguments;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return move(pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
}

EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *arguments) {
    (void)arguments;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    for (CUdevice device = 0; pid == getpid() && state == CU_PROCESS_STATE_LOCKED && device < device_count();
         device++) {
        parked[device] = own_bytes(device);
        device_release(device, parked[device]);
    }
    return move(pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
}

EXPORT CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *arguments) {
    (void)arguments;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = pid == getpid() && state == CU_PROCESS_STATE_CHECKPOINTED ? restore() : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
    return move(pid, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED);
}
