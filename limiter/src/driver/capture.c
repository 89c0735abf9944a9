#include "driver/capture.h"

#include "driver/function_table.h"

static bool was_seen; /* atomic; never reset, because a capture may end in ways that the library does not see */

bool capture_was_seen(void) { return __atomic_load_n(&was_seen, __ATOMIC_RELAXED); }

static CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode) {
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

int capture_allow(void) { return (int)exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED); }

void capture_restore(int mode) { exchange_mode((CUstreamCaptureMode)mode); }

void capture_note(void) { __atomic_store_n(&was_seen, true, __ATOMIC_RELAXED); }
