/* The functions of NVIDIA's driver that Tapestry calls, and those that Triton's launcher does.

   `cuda.h` is Triton's copy of NVIDIA's: what differs from it in a name, a type or a number does not
   compile. Each function hands its arguments, as 64 bits each, to one that `pretend_with` was given. */

#include <assert.h>
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*Answer)(const char *, const uint64_t *);

static Answer answer;

void pretend_with(Answer given) { answer = given; }

#define ASK(...)                                                                                   \
    const uint64_t given[] = {__VA_ARGS__};                                                        \
    return (CUresult)(answer == NULL ? CUDA_ERROR_NOT_INITIALIZED : answer(__func__, given))

#define BITS(value) ((uint64_t)(uintptr_t)(value))

/* The numbers that tapestry/codegen/driver.py and tests/pretending/driver.py write. */
static_assert(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN == 97, "of a device");
static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8, "of a function");
static_assert(CU_FUNC_CACHE_PREFER_SHARED == 1, "a preference");
static_assert(CUDA_ERROR_INVALID_VALUE == 1 && CUDA_ERROR_INVALID_IMAGE == 200, "errors");
static_assert(CUDA_ERROR_INVALID_CONTEXT == 201 && CUDA_ERROR_NO_BINARY_FOR_GPU == 209, "errors");
static_assert(CUDA_ERROR_INVALID_PTX == 218 && CUDA_ERROR_UNSUPPORTED_PTX_VERSION == 222, "errors");
static_assert(CUDA_ERROR_INVALID_HANDLE == 400 && CUDA_ERROR_NOT_FOUND == 500, "errors");
static_assert(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES == 701 && CUDA_ERROR_ASSERT == 710, "errors");
static_assert(CUDA_ERROR_UNKNOWN == 999, "errors");

CUresult cuInit(unsigned int flags) { ASK(flags); }

CUresult cuDriverGetVersion(int *version) { ASK(BITS(version)); }

CUresult cuDeviceGet(CUdevice *device, int ordinal) { ASK(BITS(device), ordinal); }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    ASK(BITS(value), attribute, device);
}

CUresult cuCtxGetCurrent(CUcontext *context) { ASK(BITS(context)); }

CUresult cuCtxSetCurrent(CUcontext context) { ASK(BITS(context)); }

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ASK(BITS(context), device);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) { ASK(BITS(module), BITS(image)); }

CUresult cuModuleUnload(CUmodule module) { ASK(BITS(module)); }

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    ASK(BITS(function), BITS(module), BITS(name));
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    ASK(BITS(value), attribute, BITS(function));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    ASK(BITS(function), attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    ASK(BITS(function), config);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    ASK(BITS(value), attribute, pointer);
}

CUresult cuGetErrorString(CUresult error, const char **text) { ASK(error, BITS(text)); }

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream) {
    ASK(at, value, count, BITS(stream));
}

CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream) {
    ASK(at, value, count, BITS(stream));
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream stream) {
    ASK(at, value, count, BITS(stream));
}

CUresult cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
    ASK(at, pitch, value, width, height, BITS(stream));
}

CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z,
                        unsigned int tx, unsigned int ty, unsigned int tz, unsigned int shared,
                        CUstream stream, void **parameters, void **extra) {
    ASK(BITS(function), x, y, z, tx, ty, tz, shared, BITS(stream), BITS(parameters), BITS(extra), 0);
}

/* Triton's way to launch: the same, with attributes (clusters, cooperation, early starts). */
CUresult cuLaunchKernelEx(const CUlaunchConfig *how, CUfunction function, void **parameters,
                          void **extra) {
    ASK(BITS(function), how->gridDimX, how->gridDimY, how->gridDimZ, how->blockDimX, how->blockDimY,
        how->blockDimZ, how->sharedMemBytes, BITS(how->hStream), BITS(parameters), BITS(extra),
        how->numAttrs);
}
