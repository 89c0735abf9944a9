#include "charge/measure/nvml_probe.h"

#include "books/pointers/pointers.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/cards.h"
#include "driver/function_table.h"

/* Memory that another thread gives back meanwhile may hide the growth. */
enum { TRIES = 3, MOST_DOUBLINGS = 7 };

static bool has_physical_memory(CUdevice device) {
    int is_supported = 0;
    return functions_has(FN_cuMemCreate) &&
           REAL(cuDeviceGetAttribute)(&is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ==
               CUDA_SUCCESS &&
           is_supported;
}

static bool has_room(const uint8_t uuid[UUID_SIZE], uint64_t bytes) {
    return bytes <= saturating_sub(container_memory_limit(uuid), charge_of_container(uuid));
}

bool nvml_probe_is_possible(CUdevice device, const uint8_t uuid[UUID_SIZE], uint64_t bytes) {
    return has_room(uuid, bytes + GRANULARITY) && has_physical_memory(device);
}

static bool grows_with_memory(CUdevice device, const uint8_t uuid[UUID_SIZE]) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle handle;
    uint64_t before, with;
    if (!nvml_usage_read_own(uuid, &before)) return false;
    if (REAL(cuMemCreate)(&handle, GRANULARITY, &properties, 0) != CUDA_SUCCESS) return false;
    bool is_known = nvml_usage_read_own(uuid, &with);
    REAL(cuMemRelease)(handle);
    return is_known && with > before;
}

/* Opens no call (charge/reserve/charge.h), so that the context's own remains the only one and its size becomes known;
 * the measurement of the context corrects what others made of the charge meanwhile. If another process took the room
 * since nvml_probe_is_possible, the probe is made all the same: without it the whole context would not be charged. */
void nvml_probe(CUdevice device, const uint8_t uuid[UUID_SIZE]) {
    struct reservation reservation;
    bool is_charged = !nvml_usage_is_trusted() && charge_try(uuid, GRANULARITY, &reservation);
    for (int tries = 0; tries < TRIES && !nvml_usage_is_trusted(); tries++)
        if (grows_with_memory(device, uuid)) nvml_usage_trust();
    if (is_charged) release_charge(reservation.card, reservation.bytes);
}

/* Pauses between late probes, in ticks: about 0.1 s, doubled after each up to 16 s, because NVML may never show this
 * process, as on a virtual GPU or in another pid namespace. */
static uint64_t pause_after(unsigned probes) {
    return clock_ticks_quarter_second() / 2 << min_u64(probes, MOST_DOUBLINGS);
}

/* Without room the probe is made only where NVML shows more than was charged, which is more than the probe's memory. */
static bool is_wanted(const uint8_t uuid[UUID_SIZE]) {
    uint64_t bytes;
    return nvml_usage_read_own(uuid, &bytes) &&
           (has_room(uuid, GRANULARITY) || bytes > charge_of_process(uuid) + GRANULARITY);
}

static void probe_late(const uint8_t uuid[UUID_SIZE]) {
    static uint64_t due;
    static unsigned probes; /* relaxed atomic */
    CUdevice device;
    if (!cards_is_current(uuid, &device) || !has_physical_memory(device)) return;
    if (!is_wanted(uuid)) return;
    if (!clock_take_due(&due, pause_after(__atomic_load_n(&probes, __ATOMIC_RELAXED)))) return;
    __atomic_fetch_add(&probes, 1, __ATOMIC_RELAXED);
    nvml_probe(device, uuid);
    reconcile_own(uuid, 0);
}

static void refresh(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping) {
    (void)card;
    if (is_after_reaping && !nvml_usage_is_trusted()) CAPTURE_ALLOWS(probe_late(uuid));
}

const struct memory_class nvml_probe_class = {.refresh = refresh};
