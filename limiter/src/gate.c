#include "gate.h"

#include "cards.h"
#include "gate_turns.h"
#include "hooks.h"
#include "moment.h"
#include "place.h"

/* An idle holder keeps its turn for so long. */
#define GRACE 1000000ULL

static bool is_used; /* atomically */

/* All that a launch without a share looks at: one line of memory, and the processor's clock. */
static struct {
    uint64_t due;   /* atomically: when the limits are to be looked at again, in ticks; 0 = at once */
    bool is_needed; /* atomically: as of the last look */
} judged __attribute__((aligned(64)));

static bool judge(uint64_t now) {
    bool is_needed = place_is_limited() && place_has_shares();
    __atomic_store_n(&judged.is_needed, is_needed, __ATOMIC_RELAXED);
    __atomic_store_n(&judged.due, now + moment_ticks_between_looks(), __ATOMIC_RELAXED);
    return is_needed;
}

/* A clock that was set back, as by a machine's move, is due too. */
bool gate_is_needed(void) {
    uint64_t now = moment_ticks();
    bool is_due = __atomic_load_n(&judged.due, __ATOMIC_RELAXED) - now > moment_ticks_between_looks();
    return is_due ? judge(now) : __atomic_load_n(&judged.is_needed, __ATOMIC_RELAXED);
}

uint64_t gate_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z) {
    unsigned shape[6] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    return estimates_key(function, shape);
}

uint64_t gate_graph_key(CUgraphExec graph) { return estimates_key(graph, NULL); }

static struct gate *gate_here(void) {
    CUdevice device;
    uint8_t uuid[UUID_SIZE];
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS || !cards_of_device(device, uuid)) return NULL;
    return gate_made_at(device);
}

/* The mutex is held. A first launch passes even where there is no room for its marks. */
static bool admit(struct gate *gate, uint64_t key, CUcontext context, CUstream stream, struct place *place) {
    if (gate->phase != OPEN) return false;
    uint64_t expected = 0;
    bool is_known = estimates_of(&gate->estimates, key, &expected);
    uint64_t now = moment_now();
    if (!turn_fits(&gate->turn, is_known, expected, now)) return false;
    bool is_first = gate->turn.launches == 0;
    if (!marks_find(&gate->marks, context, stream, place) && !is_first) return false;
    place->is_sampled = is_first;
    if (place->is_sampled) gate->sample = key;
    turn_add(&gate->turn, is_known, expected, now);
    lease_extend(&gate->lease, gate->turn.drained + GRACE);
    gate->passing++;
    return true;
}

static void wait_for_admission(struct gate *gate, uint64_t key, CUcontext context, CUstream stream,
                               struct place *place) {
    uint64_t begun = 0;
    __atomic_store_n(&is_used, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&gate->mutex);
    while (!admit(gate, key, context, stream, place)) {
        if (!begun) begun = moment_now();
        gate_step(gate);
    }
    if (begun) lease_count_wait(&gate->lease, moment_now() - begun);
    pthread_mutex_unlock(&gate->mutex);
}

struct pass gate_enter(uint64_t key, CUstream stream) {
    struct pass pass = {0};
    CUcontext context = NULL;
    struct gate *gate = gate_here();
    if (!gate || marks_is_capturing(stream)) return pass;
    if (REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context) return pass;
    wait_for_admission(gate, key, context, stream, &pass.place);
    pass.gate = gate;
    marks_before(&pass.place);
    return pass;
}

void gate_leave(const struct pass *pass) {
    struct gate *gate = pass->gate;
    if (!gate) return;
    marks_after(&pass->place);
    pthread_mutex_lock(&gate->mutex);
    gate->passing--;
    if (gate->phase == CLOSING) pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

bool gate_is_used(void) { return __atomic_load_n(&is_used, __ATOMIC_ACQUIRE); }

void gate_forget_judgement(void) {
    judged.due = 0;
    is_used = false;
}
