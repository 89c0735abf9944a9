#include "cuda/context/lifetime/primary.h"

#include "cuda/context/lifetime/lifetime.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

CUresult primary_retain(CUdevice dev, CUcontext *out) {
    Device *device = device_at(dev);
    CUresult result =
        device->primary == NULL ? context_make(&device->primary, dev, device->primary_flags, true) : CUDA_SUCCESS;
    device->primary_references += result == CUDA_SUCCESS;
    *out = device->primary;
    return result;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    ENTER();
    REQUIRE(pctx != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    LEAVE(primary_retain(dev, pctx));
}

static void primary_destroy(Device *device) {
    if (device->primary != NULL) {
        context_destroy(device->primary);
    }
    device->primary = NULL;
    device->primary_references = 0;
}

void primary_release(CUdevice dev) {
    Device *device = device_at(dev);
    if (device->primary_references == 0) {
        return;
    }
    device->primary_references--;
    if (device->primary_references == 0) {
        primary_destroy(device);
    }
}

EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    ENTER();
    const Device *device = device_at(dev);
    REQUIRE(device != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(device->primary_references > 0, CUDA_ERROR_INVALID_CONTEXT);
    primary_release(dev);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

EXPORTED CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    ENTER();
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    primary_destroy(device_at(dev));
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

EXPORTED CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    ENTER();
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    device_at(dev)->primary_flags = flags;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

EXPORTED CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    ENTER();
    REQUIRE(flags != NULL && active != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *flags = device_at(dev)->primary_flags;
    *active = device_at(dev)->primary != NULL;
    LEAVE(CUDA_SUCCESS);
}
