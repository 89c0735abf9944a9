/* Faults of a group's MPS server, as its clients see them (docs/adr/0174). A fault ends the contexts of all clients,
 * and the daemon forgets it once they have exited, so each client leaves a word in its container's region, which stays.
 */
#ifndef VGPU_HOOKS_PROGRAMS_SPACE_FAULT_H
#define VGPU_HOOKS_PROGRAMS_SPACE_FAULT_H

#include "driver/abi.h"

/* As `space_fault_note`, with a result that is an error. */
void space_fault_note_error(CUresult result);

/* To be called with the result of a driver function in which a fault of earlier work shows, and returns it: a client
 * that sees its first fault notes that in the region. Takes no lock. */
static inline CUresult space_fault_note(CUresult result) {
    if (result != CUDA_SUCCESS) space_fault_note_error(result);
    return result;
}

#endif
