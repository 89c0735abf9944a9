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

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    return primary_retain(device, context);
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

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    primary_destroy(device_at(device));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    device_at(device)->primary_flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = device_at(device)->primary_flags;
    *active = device_at(device)->primary != NULL;
    return CUDA_SUCCESS;
}
