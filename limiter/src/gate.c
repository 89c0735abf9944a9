#include "gate.h"

#include "gate_turns.h"
#include "hooks.h"
#include "moment.h"
#include "place.h"

/* An idle holder keeps its turn for so long. */
#define GRACE 1000000ULL

static bool is_used; /* atomically */

/* How much sooner the arbiter's answer is looked for than all else. */
enum { GREETING = 256 };

/* All that a launch without a share looks at: one line of memory, and the processor's clock. */
static struct {
    uint64_t due;   /* atomically: when the limits are to be looked at again, in ticks; 0 = at once */
    bool is_needed; /* atomically: as of the last look */
} judged __attribute__((aligned(64)));

/* A clock that was set back, as by a machine's move, is due too. */
static bool is_due(const uint64_t *due, uint64_t now) {
    return __atomic_load_n(due, __ATOMIC_RELAXED) - now > moment_ticks_between_looks();
}

/* The arbiter's first answer is looked for sooner. */
static void put_off(uint64_t *due, uint64_t now, bool is_greeting) { /* NOLINT(readability-non-const-parameter) */
    uint64_t pause = moment_ticks_between_looks();
    __atomic_store_n(due, now + (is_greeting ? pause / GREETING : pause), __ATOMIC_RELAXED);
}

static struct gate *gate_here(void) {
    CUdevice device;
    return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? gate_made_at(device) : NULL;
}

static bool look(struct gate *gate, uint64_t now) {
    lease_look(&gate->lease);
    bool is_shared = place_share(gate->lease.uuid) != 0;
    __atomic_store_n(&gate->is_shared, is_shared, __ATOMIC_RELAXED);
    put_off(&gate->due, now, link_is_greeting(&gate->lease.link));
    return is_shared;
}

/* Whether launches on the card need turns. */
static bool is_needed(struct gate *gate) {
    uint64_t now = moment_ticks();
    bool is_shared = is_due(&gate->due, now) ? look(gate, now) : __atomic_load_n(&gate->is_shared, __ATOMIC_RELAXED);
    return lease_is_needed(&gate->lease, is_shared);
}

/* Whether the arbiter is to be listened to, about any card. */
static bool is_any_up(void) {
    bool any = false;
    for (int i = 0; i < GATES; i++) any |= gate_at(i) && link_is_up(&gate_at(i)->lease.link);
    return any;
}

static bool judge_limited(uint64_t now) {
    struct gate *gate = place_arbiter() ? gate_here() : NULL;
    if (gate) look(gate, now);
    return place_has_shares() || is_any_up();
}

static bool judge(uint64_t now) {
    bool is_needed = place_is_limited() && judge_limited(now);
    __atomic_store_n(&judged.is_needed, is_needed, __ATOMIC_RELAXED);
    put_off(&judged.due, now, false);
    return is_needed;
}

bool gate_is_needed(void) {
    uint64_t now = moment_ticks();
    return is_due(&judged.due, now) ? judge(now) : __atomic_load_n(&judged.is_needed, __ATOMIC_RELAXED);
}

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
    place->is_sampled = is_first;
    if (place->is_sampled) gate->sample = key;
    turn_add(&gate->turn, is_known, expected, now);
    place->is_eager = gate->is_leisurely;
    place->probe = place->span && turn_is_to_be_probed(&gate->turn) ? &gate->marks.probe : NULL;
    if (place->probe) turn_probe(&gate->turn);
    lease_extend(&gate->lease, gate->turn.drained + GRACE);
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
    if (!gate || !is_needed(gate) || marks_is_capturing(stream)) return pass;
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
