/* Wrappers of copies between card and host. A copy to the host counts as a wait for the card also where it is
 * asynchronous: the program wants the result, and a copy to memory that is not pinned blocks. What was queued ahead of
 * its turn needs the turn then (compute/gate/host_wait.h).
 *
 * Copies between a card and pageable memory, which CUDA does not know, are counted in the region. The driver is asked
 * about the memory only once launches of the program have taken turns. A copy that a capture records is none. */
#include "compute/gate/gate_state.h"
#include "compute/gate/host_wait.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "hooks/programs/space_fault.h"
#include "region/activity.h"

enum { PAGEABLE }; /* beside the values of CUmemorytype, which begin at 1 */

static unsigned query_type(CUdeviceptr address) {
    unsigned type;
    CUresult result = REAL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return result == CUDA_SUCCESS ? type : PAGEABLE;
}

/* Returns PAGEABLE, or the CUmemorytype of the memory. */
static unsigned type_of(CUdeviceptr address) {
    if (!capture_was_seen()) return query_type(address);
    unsigned type;
    CAPTURE_ALLOWS(type = query_type(address));
    return type;
}

static bool is_pageable_copy(CUdeviceptr to, CUdeviceptr from) {
    unsigned target = type_of(to), source = type_of(from);
    return (target == PAGEABLE && source == CU_MEMORYTYPE_DEVICE) ||
           (target == CU_MEMORYTYPE_DEVICE && source == PAGEABLE);
}

/* Counts a copy of that result, which is returned. */
static CUresult count(CUresult result, CUdeviceptr to, CUdeviceptr from, size_t size) {
    struct region_activity *activity = result == CUDA_SUCCESS ? gate_activity() : NULL;
    if (activity && is_pageable_copy(to, from)) activity_count_pageable_copy(activity, size);
    return space_fault_note(result);
}

/* As `count`, of a copy in a stream, which turn_events.h names. */
static CUresult count_in(CUstream stream, CUresult result, CUdeviceptr to, CUdeviceptr from, size_t size) {
    bool is_recorded = gate_is_used() && capture_was_seen() && turn_events_is_capturing(stream);
    return is_recorded ? result : count(result, to, from, size);
}

static CUresult end_wait(const struct host_wait *wait, CUresult result) {
    host_wait_end(wait);
    return result;
}

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpy)(to, from, size)), to, from, size);
}

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpy_ptds)(to, from, size)), to, from, size);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    host_wait_note_copy();
    return count_in(STREAM_OR_LEGACY(stream), REAL(cuMemcpyAsync)(to, from, size, stream), to, from, size);
}

EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    host_wait_note_copy();
    return count_in(STREAM_OR_PER_THREAD(stream), REAL(cuMemcpyAsync_ptsz)(to, from, size, stream), to, from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpyHtoD_v2)(to, from, size)), to, (CUdeviceptr)from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpyHtoD_v2_ptds)(to, from, size)), to, (CUdeviceptr)from, size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    host_wait_note_copy();
    return count_in(STREAM_OR_LEGACY(stream), REAL(cuMemcpyHtoDAsync_v2)(to, from, size, stream), to, (CUdeviceptr)from,
                    size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    host_wait_note_copy();
    return count_in(STREAM_OR_PER_THREAD(stream), REAL(cuMemcpyHtoDAsync_v2_ptsz)(to, from, size, stream), to,
                    (CUdeviceptr)from, size);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpyDtoH_v2)(to, from, size)), (CUdeviceptr)to, from, size);
}

EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size) {
    struct host_wait wait = host_wait_begin();
    return count(end_wait(&wait, REAL(cuMemcpyDtoH_v2_ptds)(to, from, size)), (CUdeviceptr)to, from, size);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    struct host_wait wait = host_wait_begin();
    return count_in(STREAM_OR_LEGACY(stream), end_wait(&wait, REAL(cuMemcpyDtoHAsync_v2)(to, from, size, stream)),
                    (CUdeviceptr)to, from, size);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    struct host_wait wait = host_wait_begin();
    return count_in(STREAM_OR_PER_THREAD(stream),
                    end_wait(&wait, REAL(cuMemcpyDtoHAsync_v2_ptsz)(to, from, size, stream)), (CUdeviceptr)to, from,
                    size);
}
