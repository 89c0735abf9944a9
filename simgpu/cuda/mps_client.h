/* Becoming a client of an MPS server. */
#ifndef SIMGPU_CUDA_MPS_CLIENT_H
#define SIMGPU_CUDA_MPS_CLIENT_H

#include <cuda.h>

/* Joins the server of the daemon whose pipe directory the environment names. CUDA_SUCCESS also where no daemon answers
 * there: the process then uses the card by itself. CUDA_ERROR_MPS_MAX_CLIENTS_REACHED when the server is full,
 * CUDA_ERROR_MPS_SERVER_NOT_READY while clients of before a fault live or the daemon ends. Under the lock, in a process
 * that has joined the ledger. */
CUresult mps_client_connect(void);

#endif
