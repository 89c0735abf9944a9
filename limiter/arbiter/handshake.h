/* The first words between a process and the arbiter. */
#ifndef VGPU_ARBITER_HANDSHAKE_H
#define VGPU_ARBITER_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arbitration.h"

/* Whether that is a hello, of whatever version. */
bool handshake_is_hello(const struct arbitration_hello *hello, size_t size);

/* Answers it; `page` is the descriptor that goes with it, or -1. Never waits: false where it cannot be sent. */
bool handshake_send(int fd, enum arbitration_result result, int page_fd);

/* Tells one for whom there is no place, and closes it. */
void handshake_refuse(int fd);

void handshake_close_page_fd(int page_fd);

#endif
