/* Wrappers of modules. Only the driver knows how much memory code takes, and it may load code as late as a kernel's
 * first use, so these calls are measured. */
#include "charge/measure/local_memory.h"
#include "charge/measure/measured_call.h"
#include "driver/function_table.h"
#include "driver/kernel_loading.h"

static CUresult finish_load(struct measured_call *call, CUresult result, const CUmodule *module) {
    if (measured_call_fits(call, result)) return result;
    REAL(cuModuleUnload)(*module);
    return measured_call_refuse(call);
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path) {
    struct measured_call call = measured_call_begin("cuModuleLoad", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(&call, REAL(cuModuleLoad)(module, path), module);
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    struct measured_call call = measured_call_begin("cuModuleLoadData", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(&call, REAL(cuModuleLoadData)(module, image), module);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                   void **values) {
    struct measured_call call = measured_call_begin("cuModuleLoadDataEx", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(&call, REAL(cuModuleLoadDataEx)(module, image, count, options, values), module);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    struct measured_call call = measured_call_begin("cuModuleLoadFatBinary", 0);
    if (call.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    return finish_load(&call, REAL(cuModuleLoadFatBinary)(module, image), module);
}

static CUresult reconcile_after(CUresult result) {
    if (result == CUDA_SUCCESS) measured_call_reconcile_if_due();
    return result;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    local_memory_forget_all();
    kernel_loading_forget_all();
    struct measured_end end = measured_call_begin_end();
    CUresult result = REAL(cuModuleUnload)(module);
    measured_call_finish_end(&end, result == CUDA_SUCCESS);
    return result;
}

/* cuModuleGetFunction and cuFuncLoad may load code that cannot be unloaded alone, so its memory is charged, never
 * refused. */
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    return reconcile_after(REAL(cuModuleGetFunction)(function, module, name));
}

EXPORT CUresult cuFuncLoad(CUfunction function) { return reconcile_after(REAL(cuFuncLoad)(function)); }
