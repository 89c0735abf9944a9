#include "hooks/programs/queued_frees.h"

#include <string.h>

#include "compute/gate/gate_drive.h"

static void drain(const uint8_t uuid[UUID_SIZE]) {
    for (int device = 0; gate_is_used() && device < GATES; device++) {
        struct gate *gate = gate_at(device);
        if (gate && memcmp(gate->request.uuid, uuid, UUID_SIZE) == 0) gate_drive_drain(gate);
    }
}

const struct memory_class queued_frees_class = {.trim = drain};
