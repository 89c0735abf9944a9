/* The first words between a process and the arbiter. */
#ifndef VGPU_WELCOME_H
#define VGPU_WELCOME_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arbitration.h"

/* Whether that is a hello, of whatever version. */
bool welcome_is_hello(const struct arbitration_hello *hello, size_t size);

/* Answers it; `page` is the descriptor that goes with it, or -1. Never waits: false where it cannot be sent. */
bool welcome_send(int fd, enum arbitration_result result, int page);

/* Tells one for whom there is no place, and closes it. */
void welcome_refuse(int fd);

void welcome_close(int page);

#endif
