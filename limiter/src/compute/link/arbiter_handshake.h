/* Messages through the socket to the node's arbiter (arbitration.h). No function blocks. */
#ifndef VGPU_COMPUTE_LINK_ARBITER_HANDSHAKE_H
#define VGPU_COMPUTE_LINK_ARBITER_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arbitration.h"
#include "region/region.h"

enum handshake {
    HANDSHAKE_PENDING,  /* no answer yet */
    HANDSHAKE_ACCEPTED, /* the page is mapped */
    HANDSHAKE_REFUSED,  /* refused, or the answer or its page is not valid */
    HANDSHAKE_LOST,     /* the connection is closed */
};

/* Connects to the socket at `path` and sends the hello for the card `uuid`. Returns the socket's descriptor, for the
 * caller to close, or -1. */
int arbiter_handshake_send_hello(const char *path, const uint8_t uuid[UUID_SIZE]);

/* Receives the welcome. If accepted, `*page` is the page, mapped read-only, for the caller to unmap; if refused,
 * MAP_FAILED; otherwise `*page` is unchanged. */
enum handshake arbiter_handshake_receive_welcome(int fd, void **page);

/* Sends a message, or drops it if the socket's buffer is full. False if the connection is closed. */
bool arbiter_handshake_send_message(int fd, const struct arbitration_message *message);

/* Whether the arbiter has closed the connection. */
bool arbiter_handshake_is_lost(int fd);

#endif
