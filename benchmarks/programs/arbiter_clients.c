/* Clients of the arbiter that take turns: arbiter_clients HOLD_US SECONDS SOCKET...
 *
 * Each client connects to a socket of its own, holds each turn for HOLD_US, ends it with no work in flight, and asks
 * for the next. Prints the number of turns, then for each turn the ns from the end of the turn before to the wakeup of
 * the next client. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "now.h"
#include "turn_client.h"

enum { CLIENTS = 1024, KEPT = 200000 };

static uint64_t ended_at; /* atomic: when the last turn ended */
static uint64_t until;    /* when all clients stop */
static struct timespec hold;
static uint32_t taken; /* atomic: number of turns */
static uint32_t waits[KEPT];

static void note(const struct arbitration_page *page) {
    uint64_t since = now_ns() - __atomic_load_n(&ended_at, __ATOMIC_ACQUIRE);
    if (!__atomic_load_n(&page->contended, __ATOMIC_RELAXED)) return;
    uint32_t number = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (number < KEPT) waits[number] = since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

static void *take_turns(void *path) {
    static const uint8_t uuid[16] = {1};
    int fd = open_socket(path);
    const struct arbitration_page *page = join(fd, uuid, 0);
    for (uint32_t turn = 0; now_ns() < until;) {
        say(fd, (struct arbitration_message){.kind = ARBITRATION_WANT});
        turn = await_turn(page, turn, until);
        note(page);
        if (hold.tv_nsec) nanosleep(&hold, NULL);
        __atomic_store_n(&ended_at, now_ns(), __ATOMIC_RELEASE);
        say(fd, (struct arbitration_message){.kind = ARBITRATION_DONE, .turn = turn});
    }
    return NULL;
}

int main(int count, char **arguments) {
    static pthread_t threads[CLIENTS];
    if (count < 4 || count - 3 > CLIENTS) return EXIT_FAILURE;
    hold.tv_nsec = atol(arguments[1]) * 1000;
    until = now_ns() + (uint64_t)(atof(arguments[2]) * 1e9);
    for (int i = 3; i < count; i++)
        if (pthread_create(&threads[i - 3], NULL, take_turns, arguments[i]) != 0) fail("thread");
    for (int i = 3; i < count; i++) pthread_join(threads[i - 3], NULL);
    printf("%u\n", taken);
    for (uint32_t i = 0; i < taken && i < KEPT; i++) printf("%u\n", waits[i]);
    return EXIT_SUCCESS;
}
