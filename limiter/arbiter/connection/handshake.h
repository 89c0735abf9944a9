/* The first message of a client and the arbiter's answer (arbitration.h). No function blocks. */
#ifndef VGPU_ARBITER_CONNECTION_HANDSHAKE_H
#define VGPU_ARBITER_CONNECTION_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arbitration.h"

/* Whether a message of `size` bytes is a hello, of any version. */
bool handshake_is_hello(const struct arbitration_hello *hello, size_t size);

/* Sends the welcome through the socket `fd`, with the descriptor `page_fd` of the client's page unless that is -1.
 * False if it cannot be sent. */
bool handshake_send(int fd, enum arbitration_result result, int page_fd);

/* Answers ARBITRATION_TOO_MANY and closes the socket. */
void handshake_refuse(int fd);

/* Closes the descriptor of a page; does nothing if it is -1. */
void handshake_close_page_fd(int page_fd);

#endif
