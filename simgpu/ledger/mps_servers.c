#include "ledger/mps_servers.h"

#include <errno.h>
#include <stddef.h>

#include "ledger/attach.h"
#include "ledger/card_time.h"
#include "ledger/state.h"

/* The entry of a server whose process lives; NULL = there is none. */
static struct mps_server *find(uint64_t id) {
    struct mps_server *server = &state->mps_server[id % MPS_SERVERS];
    return id != 0 && server->id == id && slot_is_alive((int)server->slot) ? server : NULL;
}

static bool is_client(uint32_t slot, uint64_t server) {
    return state->slot[slot].server == server && slot_is_alive((int)slot);
}

uint64_t mps_server_open(void) {
    HOLD_STATE();
    for (uint64_t i = 0; i < MPS_SERVERS; i++) {
        struct mps_server *server = &state->mps_server[i];
        if (find(server->id)) continue;
        state->mps_ids += MPS_SERVERS;
        *server = (struct mps_server){.id = state->mps_ids + i, .slot = (uint32_t)own_slot};
        return server->id;
    }
    return 0;
}

void mps_server_forget(uint32_t slot) {
    for (uint64_t i = 0; i < MPS_SERVERS; i++)
        if (state->mps_server[i].slot == slot) state->mps_server[i].id = 0;
}

unsigned mps_server_pid(uint32_t slot) {
    const struct mps_server *server = find(state->slot[slot].server);
    return server ? slot_pid((uint32_t)server->slot) : 0;
}

static unsigned count_clients(uint64_t server, bool only_faulted) {
    unsigned count = 0;
    uint64_t faults = state->mps_server[server % MPS_SERVERS].faults;
    for (uint32_t slot = 0; slot < state->slots_used; slot++)
        count += is_client(slot, server) && (!only_faulted || state->slot[slot].faults_before != faults);
    return count;
}

int mps_client_join(uint64_t server, struct mps_limits limits) {
    HOLD_STATE();
    const struct mps_server *found = find(server);
    if (!found) return -ENOENT;
    if (count_clients(server, true) > 0) return -EAGAIN;
    if (count_clients(server, false) >= MPS_CLIENTS) return -EUSERS;
    struct slot *own = &state->slot[own_slot];
    own->faults_before = found->faults;
    own->most_bytes = limits.bytes;
    own->percentage = limits.percentage;
    own->server = server;
    return 0;
}

enum mps_state mps_client_state(void) {
    if (own_slot < 0 || state->slot[own_slot].server == 0) return MPS_NONE;
    const struct mps_server *server = find(state->slot[own_slot].server);
    if (!server) return MPS_ENDED;
    uint64_t faults = __atomic_load_n(&server->faults, __ATOMIC_ACQUIRE);
    return faults == state->slot[own_slot].faults_before ? MPS_SERVING : MPS_FAULTED;
}

struct mps_limits mps_client_limits(void) {
    if (own_slot < 0 || state->slot[own_slot].server == 0) return (struct mps_limits){.percentage = 100};
    const struct slot *own = &state->slot[own_slot];
    return (struct mps_limits){.percentage = (uint32_t)own->percentage, .bytes = own->most_bytes};
}

void mps_client_fault(void) {
    HOLD_STATE();
    struct mps_server *server = own_slot < 0 ? NULL : find(state->slot[own_slot].server);
    if (!server) return;
    __atomic_fetch_add(&server->faults, 1, __ATOMIC_RELEASE);
    card_time_forget((uint32_t)server->slot);
}

unsigned mps_server_clients(uint64_t server, unsigned pids[MPS_CLIENTS]) {
    unsigned count = 0;
    if (ledger_attach() != 0) return 0;
    HOLD_STATE();
    for (uint32_t slot = 0; slot < state->slots_used && count < MPS_CLIENTS; slot++)
        if (is_client(slot, server)) pids[count++] = slot_pid(slot);
    return count;
}

bool mps_server_is_faulted(uint64_t server) {
    if (ledger_attach() != 0) return false;
    HOLD_STATE();
    return count_clients(server, true) > 0;
}
