#include "hooks/memory/spill.h"

#include "charge/reserve/charge.h"
#include "common/log.h"
#include "driver/function_table.h"

static bool is_spillable(const struct attempt *attempt, CUresult result) {
    bool is_card_full = result == CUDA_ERROR_OUT_OF_MEMORY && !attempt->is_refused;
    return is_card_full && attempt->is_limited && charge_may_spill(attempt->uuid);
}

/* Keeps the memory on the host, where the card accesses it: the card is full, so migrating it in would evict other
 * managed memory, perhaps another container's (docs/adr/0016). Errors are ignored, because advice only affects
 * speed. */
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
    log_debug("%s: the card is full: %zu bytes are served from managed memory on the host", attempt->function_name,
              bytes);
    return CUDA_SUCCESS;
}
