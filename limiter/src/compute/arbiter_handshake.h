/* What goes through the socket to the node's arbiter (arbitration.h). No call waits. */
#ifndef VGPU_COMPUTE_ARBITER_HANDSHAKE_H
#define VGPU_COMPUTE_ARBITER_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arbitration.h"
#include "region/region.h"

enum handshake { HANDSHAKE_PENDING, HANDSHAKE_ACCEPTED, HANDSHAKE_REFUSED, HANDSHAKE_LOST };

/* Connects and says which card it is about. A descriptor, or -1. */
int arbiter_handshake_send_hello(const char *path, const uint8_t uuid[UUID_SIZE]);

/* The answer, where there is one yet; with an acceptance, the page mapped for reading. */
enum handshake arbiter_handshake_receive_welcome(int fd, void **page);

/* False where the arbiter is gone. */
bool arbiter_handshake_send_message(int fd, const struct arbitration_message *message);

/* Whether it is gone. */
bool arbiter_handshake_is_lost(int fd);

#endif
