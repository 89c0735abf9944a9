#include "hooks/memory/spill.h"

#include "charge/charge.h"
#include "common/log.h"
#include "driver/function_table.h"

static bool is_spillable(const struct attempt *attempt, CUresult result) {
    return result == CUDA_ERROR_OUT_OF_MEMORY && attempt->is_limited && charge_may_spill(attempt->uuid);
}

/* It stays on the host, and the card reads and writes it from there: the card is full, so to move it in would move
 * something out, perhaps another container's. Advice that the driver does not take changes nothing but speed. */
static void advise(CUdeviceptr pointer, size_t bytes) {
    CUdevice device;
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return;
    REAL(cuMemAdvise)(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
    REAL(cuMemAdvise)(pointer, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device);
}

CUresult spill(struct attempt *attempt, CUresult result, CUdeviceptr *pointer, size_t bytes) {
    if (!is_spillable(attempt, result) || !attempt_make_managed(attempt, bytes)) return result;
    if (REAL(cuMemAllocManaged)(pointer, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) return result;
    advise(*pointer, bytes);
    charge_count_spill(attempt->reservation.card, attempt->reservation.bytes);
    log_debug("%s: the card is full, %zu bytes are served from the host's memory", attempt->function_name, bytes);
    return CUDA_SUCCESS;
}
