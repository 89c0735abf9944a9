#include "cuda/context/lifetime/primary.h"

#include "cuda/context/lifetime/lifetime.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

CUresult primary_retain(CUdevice dev, CUcontext *out) {
    struct device *device = device_at(dev);
    CUresult result =
        !device->primary ? context_make(&device->primary, dev, device->primary_flags, true) : CUDA_SUCCESS;
    device->primary_references += result == CUDA_SUCCESS;
    *out = device->primary;
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    return primary_retain(dev, pctx);
}

static void primary_destroy(struct device *device) {
    if (device->primary) context_destroy(device->primary);
    device->primary = NULL;
    device->primary_references = 0;
}

void primary_release(CUdevice dev) {
    struct device *device = device_at(dev);
    if (device->primary_references == 0) return;
    device->primary_references--;
    if (device->primary_references == 0) primary_destroy(device);
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct device *device = device_at(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    primary_release(dev);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    primary_destroy(device_at(dev));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    device_at(dev)->primary_flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = device_at(dev)->primary_flags;
    *active = device_at(dev)->primary != NULL;
    return CUDA_SUCCESS;
}
