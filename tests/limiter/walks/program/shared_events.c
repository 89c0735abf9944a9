/* Events that this process shares with a child: each of them waits for work of the other. */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

/* The child waits for the event, and records it again behind work of its own. */
static void give_to_child(struct walker *walker, CUevent event) {
    CUipcEventHandle handle;
    char text[TEXT_SIZE(handle)];
    char *arguments[] = {"walk", "await", text, NULL};
    if (DO(walker, cuIpcGetEventHandle, &handle, event) != CUDA_SUCCESS) return;
    to_text(text, &handle, sizeof handle);
    int code = run_again(walker, arguments);
    note(walker, "await", (CUresult)code);
    if (code == 0 && DO(walker, cuEventQuery, event) == CUDA_ERROR_NOT_READY)
        complain(walker, "a child waited for an event that has not passed", code);
}

static void shared_event(struct walker *walker) {
    const struct track *track = any_track(walker);
    CUfunction kernel = any_kernel(walker);
    CUevent event = NULL;
    if (options.is_child) return;
    if (DO(walker, cuEventCreate, &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    if (kernel) DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, track->stream, NULL, NULL);
    if (DO(walker, cuEventRecord, event, track->stream) == CUDA_SUCCESS) give_to_child(walker, event);
    DO(walker, cuStreamWaitEvent, track->stream, event, 0);
    DO(walker, cuEventDestroy_v2, event);
}

static int use_event(CUevent event, CUfunction kernel) {
    if (cuda.cuEventSynchronize(event) != CUDA_SUCCESS) return 7;
    if (cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS) return 8;
    if (cuda.cuEventRecord(event, NULL) != CUDA_SUCCESS) return 9;
    if (cuda.cuEventSynchronize(event) != CUDA_SUCCESS) return 10;
    return cuda.cuEventDestroy_v2(event) == CUDA_SUCCESS ? 0 : 11;
}

/* Run by the child of the step above. */
int await_event(const char *hexadecimal) {
    CUipcEventHandle handle;
    CUmodule module;
    CUfunction kernel;
    CUevent event;
    from_text(&handle, hexadecimal, sizeof handle);
    if (!child_begins()) return 3;
    if (cuda.cuIpcOpenEventHandle(&event, handle) != CUDA_SUCCESS) return 4;
    if (cuda.cuModuleLoadData(&module, "") != CUDA_SUCCESS) return 5;
    if (cuda.cuModuleGetFunction(&kernel, module, "busy_40") != CUDA_SUCCESS) return 6;
    return use_event(event, kernel);
}

const struct step shared_event_steps[] = {{"shared event", shared_event, 1}, {NULL, NULL, 0}};
