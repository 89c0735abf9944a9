#include "hooks/programs/context_end.h"

#include <stdlib.h>

#include "books/pointers/pointers.h"
#include "charge/measure/local_memory.h"
#include "charge/reconcile/reconcile.h"
#include "charge/reserve/charge.h"
#include "compute/gate/gate_teardown.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "driver/kernel_loading.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/memory/ipc.h"

int context_end_device(CUcontext context) {
    CUdevice device = -1;
    if (!context || REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS) return -1;
    CUresult result = REAL(cuCtxGetDevice)(&device);
    REAL(cuCtxPopCurrent_v2)(&context);
    return result == CUDA_SUCCESS ? device : -1;
}

/* CUDA_ERROR_INVALID_VALUE means that the driver does not know the pointer, with or without a current context (measured
 * on an H200, driver 580); other errors say nothing about the pointer. Memory of a device's pool outlives the context,
 * so the driver still knows it. */
static bool is_freed(CUdeviceptr pointer) {
    CUcontext owner;
    return REAL(cuPointerGetAttribute)((void *)&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
           CUDA_ERROR_INVALID_VALUE;
}

static void release_pointer(CUdeviceptr pointer) {
    struct pointer_charge charge;
    if (pointers_take(pointer, &charge)) ipc_release(pointer, charge);
}

static void release_freed_pointers(void) {
    size_t count;
    uint64_t *pointers = pointers_list(&count);
    for (size_t i = 0; i < count; i++)
        if (is_freed(pointers[i])) release_pointer(pointers[i]);
    free(pointers);
}

static void reconcile_device(int device) {
    uint8_t uuid[UUID_SIZE];
    if (device >= 0 && cards_of_device(device, uuid))
        reconcile_all(uuid, 0);
    else
        reconcile_every_card(0);
}

struct context_end context_end_begin(int device, CUcontext context) {
    struct context_end end = {.device = device};
    gate_teardown_contexts(device, context, &end.pages);
    end.call_slot = charge_begin_call();
    local_memory_forget_all();
    kernel_loading_forget_all();
    return end;
}

void context_end_finish(const struct context_end *end, bool has_ended) {
    if (!has_ended) queue_page_restore(&end->pages);
    if (has_ended) release_freed_pointers();
    if (has_ended) ipc_end_imports(is_freed);
    if (has_ended) graph_memory_correct(-1, false);
    charge_end_call(end->call_slot);
    if (has_ended) reconcile_device(end->device);
}
