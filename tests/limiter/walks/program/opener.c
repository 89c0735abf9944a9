/* The thread that opens gates (walk.h). */
#include <unistd.h>

#include "walk.h"

static pthread_t opener;
static bool is_over; /* atomic */
static uint32_t *words;
static unsigned tracks;

/* A gate gets the value that was wanted one pass before. */
static void *open_gates(void *unused) {
    static uint32_t before[WALKERS * WORDS_A_WALKER / WORDS_A_TRACK];
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        for (unsigned i = 0; i < tracks; i++) {
            uint32_t *gate = &words[i * WORDS_A_TRACK + 1];
            __atomic_store_n(gate, before[i], __ATOMIC_RELEASE);
            before[i] = __atomic_load_n(gate + 1, __ATOMIC_ACQUIRE);
        }
        usleep(700);
    }
    return unused;
}

void opener_start(uint32_t *gates, unsigned count) {
    words = gates;
    tracks = count;
    pthread_create(&opener, NULL, open_gates, NULL);
}

void opener_end(void) {
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(opener, NULL);
}
