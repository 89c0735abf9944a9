#include "driver/capture.h"

#include "driver/function_table.h"

static bool was_seen; /* atomically; never false again: a capture may end in ways that we do not see */

bool capture_was_seen(void) { return __atomic_load_n(&was_seen, __ATOMIC_RELAXED); }

static CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

int capture_allow(void) { return (int)exchange(CU_STREAM_CAPTURE_MODE_RELAXED); }

void capture_restore(int mode) { exchange((CUstreamCaptureMode)mode); }

void capture_note(void) { __atomic_store_n(&was_seen, true, __ATOMIC_RELAXED); }
