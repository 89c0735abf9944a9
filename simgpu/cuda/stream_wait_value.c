#include "context.h"
#include "driver.h"
#include "hardware/export.h"
#include "stream.h"
#include "stream_capture.h"
#include "stream_waits.h"

EXPORTED CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    ENTER();
    CUcontext context = stream_context(stream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(flags == CU_STREAM_WAIT_VALUE_GEQ && addr != 0, CUDA_ERROR_INVALID_VALUE);
    CUresult forbidden = capture_forbids_in(stream);
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    const uint32_t *word = (const uint32_t *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr): host memory */
    LEAVE(stream_waits_add(context, word, value));
}
