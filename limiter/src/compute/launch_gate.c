#include "compute/launch_gate.h"

#include "common/clock.h"
#include "compute/gate_state.h"
#include "driver/function_table.h"

static bool is_used; /* atomically */

uint64_t gate_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z) {
    unsigned shape[6] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    return estimates_key(function, shape);
}

uint64_t gate_graph_key(CUgraphExec graph) { return estimates_key(graph, NULL); }

/* The mutex is held. A first launch passes even where there is no room for its marks. */
static enum verdict admit(struct gate *gate, uint64_t key, CUcontext context, CUstream stream, struct place *place) {
    if (gate->phase != OPEN) return VERDICT_FULL;
    uint64_t expected = 0;
    bool is_known = estimates_of(&gate->estimates, key, &expected);
    uint64_t now = moment_now();
    bool is_first = gate->turn.launches == 0;
    if (!is_first && lease_is_called_back(&gate->lease)) return VERDICT_FULL;
    enum verdict verdict = turn_judge(&gate->turn, is_known, expected, now);
    if (verdict != VERDICT_FITS) return verdict;
    if (!marks_find(&gate->marks, context, stream, place) && !is_first) return VERDICT_UNMEASURED;
    place->is_sampled = !is_known || gate->turn.launches == gate->sample_at;
    if (place->is_sampled) gate->sample = key;
    turn_add(&gate->turn, is_known, expected, now);
    place->is_eager = gate->is_leisurely;
    place->probe = place->span && turn_is_to_be_probed(&gate->turn) ? &gate->marks.probe : NULL;
    if (place->probe) turn_probe(&gate->turn);
    lease_extend(&gate->lease, gate->turn.drained + ARBITRATION_GRACE_NS);
    gate->passing++;
    return VERDICT_FITS;
}

static void wait_for_admission(struct gate *gate, uint64_t key, CUcontext context, CUstream stream,
                               struct place *place) {
    uint64_t begun = 0;
    enum verdict verdict;
    __atomic_store_n(&is_used, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&gate->mutex);
    while ((verdict = admit(gate, key, context, stream, place)) != VERDICT_FITS) {
        if (!begun) begun = moment_now();
        gate_step(gate, verdict);
    }
    if (begun) lease_count_wait(&gate->lease, moment_now() - begun);
    pthread_mutex_unlock(&gate->mutex);
}

struct pass gate_enter(uint64_t key, CUstream stream) {
    struct pass pass = {0};
    CUcontext context = NULL;
    struct gate *gate = gate_here();
    if (!gate || !gate_needs_turns(gate) || marks_is_capturing(stream)) return pass;
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

void gate_forget_use(void) { is_used = false; }
