/* Which processes hold memory of a card. */
#include "driver/function_table.h"
#include "hooks/view/processes.h"

/* The lists of all versions. What the driver will refuse goes to it as it is. */
#define LIST(name, Info)                                                                                          \
    static nvmlReturn_t ask_##name(const struct question *question, unsigned *count, void *entries) {             \
        return REAL(name)(question->device, count, entries);                                                      \
    }                                                                                                             \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, Info infos[]) {                                \
        struct question question = {.ask = ask_##name, .device = device, .layout = LAYOUT(Info)};                 \
        if (!count || (*count && !infos) || !processes_shown(&question)) return REAL(name)(device, count, infos); \
        return processes_answer(&question, count, infos);                                                         \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

static nvmlReturn_t ask_details(const struct question *question, unsigned *count, void *entries) {
    nvmlProcessDetailList_t list = {nvmlProcessDetailList_v1, question->mode, *count, entries};
    nvmlReturn_t result = REAL(nvmlDeviceGetRunningProcessDetailList)(question->device, &list);
    *count = list.numProcArrayEntries;
    return result;
}

/* A version that we do not know might show others: it is refused, as an older driver does. */
EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    struct question question = {.ask = ask_details, .device = device, .layout = LAYOUT(nvmlProcessDetail_v1_t)};
    if (!list || !processes_shown(&question)) return REAL(nvmlDeviceGetRunningProcessDetailList)(device, list);
    if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    question.mode = list->mode;
    return processes_answer(&question, &list->numProcArrayEntries, list->procArray);
}
