/* A client of the arbiter that launches nothing: the connection, and the wait for a turn. */
#ifndef BENCH_TURN_CLIENT_H
#define BENCH_TURN_CLIENT_H

#include <stdint.h>

#include "common/arbitration.h"

/* Prints what failed, and ends the program. */
void fail(const char *what);

/* Connects to a container's socket. */
int open_socket(const char *path);

/* Says which card it wants and what it can do (enum arbitration_ability), and returns its page. */
const struct arbitration_page *join(int fd, const uint8_t uuid[16], uint32_t abilities);

void say(int fd, struct arbitration_message message);

/* Waits for another turn than the last one, and returns its number; returns at the time of now_ns() `until` at the latest. */
uint32_t await_turn(const struct arbitration_page *page, uint32_t last, uint64_t until);

#endif
