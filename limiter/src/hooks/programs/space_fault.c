#include "hooks/programs/space_fault.h"

#include "common/clock.h"
#include "container/container.h"

/* Errors of a kernel after which, as cuda.h says of each, the process must be started again to use CUDA. An assertion
 * (CUDA_ERROR_ASSERT) is left out: whether it ends the other clients has not been measured. */
static bool is_fault(CUresult result) {
    switch (result) {
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
            return true;
        default:
            return false;
    }
}

/* Later calls of the process have the same result, so the first time stays. */
static void note(struct region_header *header, uint64_t since) {
    if (since == __atomic_load_n(&header->fault_client_since, __ATOMIC_RELAXED)) return;
    __atomic_store_n(&header->fault_client_since, since, __ATOMIC_RELAXED);
    __atomic_store_n(&header->fault_seen_at, clock_now(), __ATOMIC_RELEASE);
}

void space_fault_note_error(CUresult result) {
    uint64_t since = is_fault(result) ? container_space_client_since() : 0;
    struct region *region = since ? container_region() : NULL;
    if (region) note(&region->header, since);
}
