/* Many clients of one card that take turns and launch nothing, to see that each of them gets turns:
 *
 *   turn_waits CARD ABILITIES HOLD_US REST_US SOCKET...
 *
 * CARD: 32 hexadecimal digits. Each client connects to a socket of its own. Prints a line when all are connected, and
 * reads a line with a begin and an end time (CLOCK_MONOTONIC, ns), between which turns count. Until the end each client
 * asks for a turn, holds it for HOLD_US, ends it with no work in flight, and rests for REST_US. At the end prints for each client a line with the turns that
 * it got and the longest wait for one in us; a wait that the end cuts off counts too. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "now.h"
#include "turn_client.h"

enum { CLIENTS = 1024, CARD_SIZE = 16, LINE_SIZE = 64, US = 1000, HEX = 16, DECIMAL = 10, FIRST_SOCKET = 5, ASK_AGAIN_NS = 200000000, LOOK_NS = 10000000 };

static struct {
    uint8_t card[CARD_SIZE];
    uint32_t abilities;
    useconds_t hold_us, rest_us;
    uint64_t from, until;
} work;

struct waiting_client {
    pthread_t thread;
    int fd;
    const struct arbitration_page *page;
    unsigned long turns, longest_us;
};

static void count(struct waiting_client *client, uint64_t asked) {
    uint64_t now = now_ns();
    if (now < work.from) return;
    uint64_t waited_us = (now - asked) / US;
    client->turns += now < work.until;
    if (waited_us > client->longest_us) client->longest_us = waited_us;
}

/* The arbiter ends a turn in which nothing is launched after a millisecond, also before a busy machine has woken the
 * client. It says so in `yield_turn`, or not at all if the turn had no limits. The client then asks again, as the limiter
 * does. */
static uint32_t ask_until_given(const struct waiting_client *client, uint32_t last) {
    const struct arbitration_page *page = client->page;
    uint64_t ask_at = 0;
    for (uint32_t ended = 0;;) {
        uint32_t asked_back = __atomic_load_n(&page->yield_turn, __ATOMIC_RELAXED);
        if (asked_back != ended || now_ns() >= ask_at) {
            say(client->fd, (struct arbitration_message){.kind = ARBITRATION_WANT});
            ask_at = now_ns() + ASK_AGAIN_NS;
        }
        ended = asked_back;
        uint32_t turn = await_turn(page, last, now_ns() + LOOK_NS);
        if ((turn && turn != last) || now_ns() > work.until) return turn;
    }
}

static void *take_turns(void *argument) {
    struct waiting_client *client = argument;
    for (uint32_t turn = 0; now_ns() < work.until;) {
        uint64_t asked = now_ns();
        turn = ask_until_given(client, turn);
        count(client, asked);
        usleep(work.hold_us);
        say(client->fd, (struct arbitration_message){.kind = ARBITRATION_DONE, .turn = turn});
        usleep(work.rest_us);
    }
    return NULL;
}

static void read_card(const char *text) {
    for (int i = 0; i < CARD_SIZE; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        work.card[i] = (uint8_t)strtoul(digits, NULL, HEX);
    }
}

static bool await_times(void) {
    char line[LINE_SIZE], *end = NULL;
    printf("ready\n");
    (void)fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return false;
    work.from = strtoull(line, &end, DECIMAL);
    work.until = strtoull(end, NULL, DECIMAL);
    return true;
}

int main(int count, char **arguments) {
    static struct waiting_client clients[CLIENTS];
    int clients_count = count - FIRST_SOCKET;
    if (clients_count < 1 || clients_count > CLIENTS || strlen(arguments[1]) != 2 * CARD_SIZE) return EXIT_FAILURE;
    read_card(arguments[1]);
    work.abilities = (uint32_t)strtoul(arguments[2], NULL, DECIMAL);
    work.hold_us = (useconds_t)strtoul(arguments[3], NULL, DECIMAL);
    work.rest_us = (useconds_t)strtoul(arguments[4], NULL, DECIMAL);
    for (int i = 0; i < clients_count; i++) {
        clients[i].fd = open_socket(arguments[FIRST_SOCKET + i]);
        clients[i].page = join(clients[i].fd, work.card, work.abilities);
    }
    if (!await_times()) return EXIT_FAILURE;
    for (int i = 0; i < clients_count; i++)
        if (pthread_create(&clients[i].thread, NULL, take_turns, &clients[i]) != 0) fail("thread");
    for (int i = 0; i < clients_count; i++) pthread_join(clients[i].thread, NULL);
    for (int i = 0; i < clients_count; i++) printf("%lu %lu\n", clients[i].turns, clients[i].longest_us);
    return EXIT_SUCCESS;
}
