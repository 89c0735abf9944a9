/* The clients of an MPS server on a card: they work at the same moment, in the time slices of their server.
 *
 * Each client works on one of its queues at a time. The work of a queue fills a percentage of the card's
 * multiprocessors; a client that may use fewer takes longer by as much. Where the clients want more than there are, all
 * take longer by as much: the sum of their use is the card. Only timeline.c includes this header. */
#ifndef SIMGPU_HARDWARE_TIMELINE_CLIENTS_H
#define SIMGPU_HARDWARE_TIMELINE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/timeline_queue.h"

/* Whether the queue stands for a server. */
bool timeline_is_server(const struct timeline *card, uint32_t queue);
/* A queue of a client that has work; 0 = none. */
uint32_t timeline_client_due(const struct timeline *card, uint32_t server);
/* The least time in which the work of the clients that can be done now is done. */
uint64_t timeline_clients_least_time(const struct timeline *card, uint32_t server);
/* Has each client work on its next queue. Does nothing for a context that is no server. */
void timeline_clients_turn(struct timeline *card, uint32_t server);
/* Does work of the clients until a queue has none left or reaches what a barrier waits for, the slice ends, or `now`.
 */
void timeline_clients_work(struct timeline *card, uint32_t server, uint64_t now);

#endif
