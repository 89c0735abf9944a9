/* What goes through the socket to the node's arbiter (arbitration.h). No call waits. */
#ifndef VGPU_GREETING_H
#define VGPU_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arbitration.h"
#include "region/region.h"

enum greeting { GREETING_NONE, GREETING_ACCEPTED, GREETING_REFUSED, GREETING_LOST };

/* Connects and says which card it is about. A descriptor, or -1. */
int greeting_send(const char *path, const uint8_t uuid[UUID_SIZE]);

/* The answer, where there is one yet; with an acceptance, the page mapped for reading. */
enum greeting greeting_answer(int fd, void **page);

/* False where the arbiter is gone. */
bool greeting_tell(int fd, const struct arbitration_message *message);

/* Whether it is gone. */
bool greeting_is_lost(int fd);

#endif
