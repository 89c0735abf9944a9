/* The process as a client of the MPS server of its container's group in space (docs/adr/0174). The driver reads in
 * cuInit from the environment which server that is, so the program's environment is overruled before. */
#ifndef VGPU_HOOKS_PROGRAMS_SPACE_CLIENT_H
#define VGPU_HOOKS_PROGRAMS_SPACE_CLIENT_H

#include <stdbool.h>

#include "driver/abi.h"

/* To be called before the driver's cuInit: in a member of a group, sets CUDA_MPS_PIPE_DIRECTORY, and with a cap
 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. Other programs choose their MPS daemon. False where a variable cannot be set for
 * lack of memory: the driver must not be called then. */
bool space_client_prepare(void);

/* To be called with the result of the driver's cuInit: notes that a member's process is a client of its server, or logs
 * why it is none. */
void space_client_conclude(CUresult result);

/* Logs what the result of this function says of a member's MPS server, if it says anything. */
void space_client_explain(const char *function_name, CUresult result);

#endif
