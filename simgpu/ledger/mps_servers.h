/* MPS servers, which are processes of the ledger, and their clients. */
#ifndef SIMGPU_LEDGER_MPS_SERVERS_H
#define SIMGPU_LEDGER_MPS_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#define MPS_CLIENTS 48 /* of one server */

/* What a client may use. */
struct mps_limits {
    uint32_t percentage; /* of the multiprocessors, 1 to 100 */
    uint64_t bytes;      /* of memory on each card; 0 = no limit */
};

/* Makes this process, which has joined the ledger, a server and returns its id; 0 when there is no room. */
uint64_t mps_server_open(void);

/* For the other files of the ledger: there is no server any more whose process had this slot. Under the file's lock. */
void mps_server_forget(uint32_t slot);

/* For the other files of the ledger: PID of the living server that the process of this slot is a client of, as the PID
 * namespace of the caller has it; 0 = there is none. Under the file's lock. */
unsigned mps_server_pid(uint32_t slot);

/* Makes this process, which has joined the ledger, a client. -ENOENT: no such server lives; -EUSERS: it has as many
 * clients as it can have; -EAGAIN: clients of before a fault have not ended yet. */
int mps_client_join(uint64_t server, struct mps_limits limits);

/* How the server of this process is. Not locked. */
enum mps_state {
    MPS_NONE,    /* this process is no client */
    MPS_SERVING, /* as it should be */
    MPS_FAULTED, /* a client has faulted since this one joined: all of them have failed */
    MPS_ENDED,   /* the server's process has ended */
};
enum mps_state mps_client_state(void);

/* This process's limits; 100 percent for a process that is no client. */
struct mps_limits mps_client_limits(void);

/* A kernel of this process has faulted: discards the work of all clients of its server. Does nothing for a process that
 * is no client. */
void mps_client_fault(void);

/* Lists the PIDs of the server's living clients, as the caller's PID namespace has them. Returns their number. */
unsigned mps_server_clients(uint64_t server, unsigned pids[MPS_CLIENTS]);
/* Whether clients of before a fault have not ended yet. */
bool mps_server_is_faulted(uint64_t server);

#endif
