/* Streams, events, kernels and modules, and the order in which the card works. */
#include <string.h>

#include "walk.h"

static const char *const NAMES[KERNELS] = {"busy_5", "busy_40", "cold_20", "busy_300"};

struct track *any_track(struct walker *walker) { return &walker->home->tracks[next(walker, STREAMS)]; }

CUfunction any_kernel(struct walker *walker) {
    struct home *home = walker->home;
    unsigned which = next(walker, KERNELS + 6);
    which = which < KERNELS ? which : 0;
    if (!home->module) {
        if (DO(walker, cuModuleLoadData, &home->module, "") != CUDA_SUCCESS) {
            home->module = NULL;
            return NULL;
        }
        for (unsigned i = 0; i < KERNELS; i++) DO(walker, cuModuleGetFunction, &home->kernels[i], home->module, NAMES[i]);
        DO(walker, cuModuleGetFunction, &home->spin, home->module, "await_5");
    }
    return home->kernels[which];
}

/* Of each pair of words, the later one is read first. */
void order_check(struct walker *walker) {
    for (unsigned i = 0; i < walker->order_count; i++) {
        const struct order *order = &walker->orders[i];
        uint32_t later = __atomic_load_n(order->later, __ATOMIC_ACQUIRE);
        uint32_t earlier = __atomic_load_n(order->earlier, __ATOMIC_ACQUIRE);
        if (later >= order->then && earlier < order->first)
            complain(walker, "work was done before the work it waits for", (long)order->first);
    }
}

/* Work of an earlier stream may still count in its own words. */
void track_place(struct walker *walker, struct track *track) {
    uint32_t *words = walker->words + walker->words_used % WORDS_A_WALKER;
    walker->words_used += WORDS_A_TRACK;
    *track = (struct track){.done = &words[0], .gate = &words[1], .wanted = &words[2]};
}

static void forget_records(struct home *home, const struct track *track) {
    for (unsigned i = 0; i < EVENTS; i++)
        if (home->records[i].track == track) home->records[i].track = NULL;
}

static void stream(struct walker *walker) {
    struct track *track = any_track(walker);
    int priority = -(int)next(walker, 3);
    if (track->is_there) {
        DO(walker, cuStreamDestroy_v2, track->stream);
        forget_records(walker->home, track);
        *track = (struct track){0};
        return;
    }
    track_place(walker, track);
    track->is_free = next(walker, 2);
    CUresult result = track->is_free ? DO(walker, cuStreamCreate, &track->stream, CU_STREAM_NON_BLOCKING)
                                     : DO(walker, cuStreamCreateWithPriority, &track->stream, 0, priority);
    track->is_there = result == CUDA_SUCCESS;
    if (!track->is_there) track->stream = NULL;
}

static void launch(struct walker *walker) {
    CUfunction kernel = any_kernel(walker);
    const struct track *track = any_track(walker);
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, track->stream, NULL, 0};
    unsigned count = 1 + next(walker, 6), kind = next(walker, 5);
    if (!kernel) return;
    for (unsigned i = 0; i < count; i++) {
        if (kind == 0)
            DO(walker, cuLaunchKernelEx, &config, kernel, NULL, NULL);
        else if (kind == 1)
            DO(walker, cuLaunchCooperativeKernel, kernel, 1, 1, 1, 1, 1, 1, 0, track->stream, NULL);
        else
            DO(walker, cuLaunchKernel, kernel, 1 + i, 1, 1, 32, 1, 1, 0, track->stream, NULL, NULL);
    }
}

static void new_kernel(struct walker *walker) {
    CUmodule module;
    CUfunction kernel;
    if (DO(walker, cuModuleLoadData, &module, "") != CUDA_SUCCESS) return;
    DO(walker, cuModuleGetFunction, &kernel, module, "busy_7");
    DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, any_track(walker)->stream, NULL, NULL);
    DO(walker, cuModuleUnload, module);
}

static void library(struct walker *walker) {
    CUlibrary *place = &walker->home->library[next(walker, KEPT)];
    CUkernel kernel;
    CUfunction function;
    if (*place) {
        DO(walker, cuLibraryUnload, *place);
        *place = NULL;
        return;
    }
    if (DO(walker, cuLibraryLoadData, place, "", NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS) {
        *place = NULL;
        return;
    }
    DO(walker, cuLibraryGetKernel, &kernel, *place, "busy_9");
    if (DO(walker, cuKernelGetFunction, &function, kernel) == CUDA_SUCCESS)
        DO(walker, cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, any_track(walker)->stream, NULL, NULL);
}

/* The stream writes its progress behind the work so far. */
static void progress(struct walker *walker) {
    struct track *track = any_track(walker);
    if (!track->is_there) return;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)track->done;
    if (DO(walker, cuStreamWriteValue32_v2, track->stream, address, track->asked + 1, 0) == CUDA_SUCCESS)
        track->asked++;
}

/* The function counts the stream's progress, as a write of the card would. */
static void count(void *data) {
    const struct call *call = data;
    uint32_t before = __atomic_exchange_n(call->done, call->value, __ATOMIC_ACQ_REL);
    if (before + 1 != call->value) complain_of_call("a function was called out of order", call->value);
}

static void count_back(CUstream stream, CUresult status, void *data) {
    (void)stream;
    if (status != CUDA_SUCCESS) complain_of_call("a callback was told of an error", status);
    count(data);
}

static void host_function(struct walker *walker) {
    struct track *track = any_track(walker);
    bool is_callback = next(walker, 3) == 0;
    if (!track->is_there || walker->calls_used == CALLS) return;
    struct call *call = &walker->host_calls[walker->calls_used++];
    *call = (struct call){track->done, track->asked + 1};
    CUresult result = is_callback ? DO(walker, cuStreamAddCallback, track->stream, count_back, call, 0)
                                  : DO(walker, cuLaunchHostFunc, track->stream, count, call);
    if (result == CUDA_SUCCESS) track->asked++;
}

/* The stream waits until the opener opens its gate, soon. */
static void gate(struct walker *walker) {
    struct track *track = any_track(walker);
    if (!track->is_there) return;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)track->gate;
    uint32_t wanted = *track->wanted + 1;
    if (DO(walker, cuStreamWaitValue32_v2, track->stream, address, wanted, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS)
        __atomic_store_n(track->wanted, wanted, __ATOMIC_RELEASE);
}

static void add_order(struct walker *walker, const struct track *from, uint32_t first, const struct track *to) {
    unsigned place = walker->order_count < ORDERS ? walker->order_count++ : next(walker, ORDERS);
    walker->orders[place] =
        (struct order){.earlier = from->done, .later = to->done, .first = first, .then = to->asked + 1};
}

/* A kernel of one stream spins until another stream, whose work is launched after it, has made progress. */
static void spin(struct walker *walker) {
    struct track *spinning = any_track(walker), *other = any_track(walker);
    CUfunction kernel = any_kernel(walker);
    if (!kernel || spinning == other || !spinning->is_there || !other->is_there || !other->is_free) return;
    uint32_t wanted = other->asked + 1;
    void *parameters[] = {&other->done, &wanted};
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)other->done;
    if (DO(walker, cuLaunchKernel, walker->home->spin, 1, 1, 1, 1, 1, 1, 0, spinning->stream, parameters, NULL) == CUDA_SUCCESS)
        add_order(walker, other, wanted, spinning);
    DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, other->stream, NULL, NULL);
    if (DO(walker, cuStreamWriteValue32_v2, other->stream, address, wanted, 0) == CUDA_SUCCESS) other->asked++;
}

static void record(struct walker *walker) {
    struct record *place = &walker->home->records[next(walker, EVENTS)];
    struct track *track = any_track(walker);
    if (!place->event && DO(walker, cuEventCreate, &place->event, 0) != CUDA_SUCCESS) {
        place->event = NULL;
        return;
    }
    if (DO(walker, cuEventRecord, place->event, track->stream) != CUDA_SUCCESS) return;
    place->track = track->is_there ? track : NULL;
    place->asked = track->asked;
}

static void wait(struct walker *walker) {
    const struct record *record = &walker->home->records[next(walker, EVENTS)];
    const struct track *track = any_track(walker);
    if (!record->track || !track->is_there || !record->track->is_there) return;
    if (DO(walker, cuStreamWaitEvent, track->stream, record->event, 0) == CUDA_SUCCESS && record->track != track)
        add_order(walker, record->track, record->asked, track);
}

static void expect_done(struct walker *walker, const struct track *track, uint32_t asked) {
    if (!track->is_there) return;
    uint32_t done = __atomic_load_n(track->done, __ATOMIC_ACQUIRE);
    if (done < asked) complain(walker, "a stream was not done after its end was awaited", (long)done);
}

static void synchronize(struct walker *walker) {
    const struct track *track = any_track(walker);
    const struct record *record = &walker->home->records[next(walker, EVENTS)];
    switch (next(walker, 6)) {
        case 0:
            DO(walker, cuCtxSynchronize);
            for (unsigned i = 0; i < STREAMS; i++)
                expect_done(walker, &walker->home->tracks[i], walker->home->tracks[i].asked);
            return;
        case 1:
        case 2:
            DO(walker, cuStreamSynchronize, track->stream);
            expect_done(walker, track, track->asked);
            return;
        case 3:
            if (record->event && DO(walker, cuEventSynchronize, record->event) == CUDA_SUCCESS && record->track)
                expect_done(walker, record->track, record->asked);
            return;
        case 4:
            DO(walker, cuStreamQuery, track->stream);
            return;
        default:
            if (record->event) DO(walker, cuEventQuery, record->event);
    }
}

/* Two events with a kernel between them. */
static void elapsed(struct walker *walker) {
    CUevent first = NULL, second = NULL;
    CUstream stream = any_track(walker)->stream;
    CUfunction kernel = any_kernel(walker);
    float ms = -1;
    DO(walker, cuEventCreate, &first, 0);
    DO(walker, cuEventCreate, &second, 0);
    DO(walker, cuEventRecord, first, stream);
    if (kernel) DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    DO(walker, cuEventRecord, second, stream);
    if (next(walker, 3)) {
        DO(walker, cuEventSynchronize, second);
        if (DO(walker, cuEventElapsedTime, &ms, first, second) == CUDA_SUCCESS && ms < 0)
            complain(walker, "an event was before the one recorded earlier, in ns", (long)(ms * 1e6F));
    }
    DO(walker, cuEventDestroy_v2, first);
    DO(walker, cuEventDestroy_v2, second);
}

static void forget_event(struct walker *walker) {
    struct record *place = &walker->home->records[next(walker, EVENTS)];
    if (place->event) DO(walker, cuEventDestroy_v2, place->event);
    *place = (struct record){0};
}

const struct step work_steps[] = {
    {"stream", stream, 4},     {"launch", launch, 16},   {"new_kernel", new_kernel, 2}, {"library", library, 1},
    {"progress", progress, 8}, {"host function", host_function, 6}, {"gate", gate, 2}, {"spin", spin, 4},        {"record", record, 5},         {"wait", wait, 5},
    {"sync", synchronize, 6},  {"elapsed", elapsed, 2}, {"forget", forget_event, 1},    {NULL, NULL, 0},
};

void events_free(struct walker *walker, struct home *home) {
    for (unsigned i = 0; i < EVENTS; i++) {
        if (home->records[i].event) DO(walker, cuEventDestroy_v2, home->records[i].event);
        home->records[i] = (struct record){0};
    }
}

void work_free(struct walker *walker, struct home *home) {
    for (unsigned i = 0; i < STREAMS; i++) {
        if (home->tracks[i].is_there) DO(walker, cuStreamDestroy_v2, home->tracks[i].stream);
        home->tracks[i] = (struct track){0};
    }
    for (unsigned i = 0; i < KEPT; i++) {
        if (home->library[i]) DO(walker, cuLibraryUnload, home->library[i]);
        home->library[i] = NULL;
    }
    if (home->module) DO(walker, cuModuleUnload, home->module);
    home->module = NULL;
}
