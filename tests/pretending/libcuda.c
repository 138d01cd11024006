/* The functions of NVIDIA's driver that Tapestry calls, with the types that they have there.

   Each hands its arguments, as 64 bits each, to a function that `pretend_with` was given. */

#include <stddef.h>
#include <stdint.h>

typedef int (*Answer)(const char *, const uint64_t *);

static Answer answer;

void pretend_with(Answer given) { answer = given; }

#define ASK(...)                                                                                   \
    const uint64_t given[] = {__VA_ARGS__};                                                        \
    return answer == NULL ? 3 : answer(__func__, given)

#define BITS(value) ((uint64_t)(uintptr_t)(value))

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ASK(BITS(value), attribute, device);
}

int cuCtxGetCurrent(void **context) { ASK(BITS(context)); }

int cuCtxSetCurrent(void *context) { ASK(BITS(context)); }

int cuDevicePrimaryCtxRetain(void **context, int device) { ASK(BITS(context), device); }

int cuModuleLoadData(void **module, const void *image) { ASK(BITS(module), BITS(image)); }

int cuModuleGetFunction(void **function, void *module, const char *name) {
    ASK(BITS(function), BITS(module), BITS(name));
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    ASK(BITS(function), attribute, value);
}

int cuFuncSetCacheConfig(void *function, int config) { ASK(BITS(function), config); }

int cuGetErrorString(int error, const char **text) { ASK(error, BITS(text)); }

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t count, void *stream) {
    ASK(at, value, count, BITS(stream));
}

int cuMemsetD16Async(uint64_t at, unsigned short value, size_t count, void *stream) {
    ASK(at, value, count, BITS(stream));
}

int cuMemsetD32Async(uint64_t at, unsigned int value, size_t count, void *stream) {
    ASK(at, value, count, BITS(stream));
}

int cuMemsetD2D32Async(uint64_t at, size_t pitch, unsigned int value, size_t width, size_t height,
                       void *stream) {
    ASK(at, pitch, value, width, height, BITS(stream));
}

int cuLaunchKernel(void *function, unsigned int x, unsigned int y, unsigned int z, unsigned int tx,
                   unsigned int ty, unsigned int tz, unsigned int shared, void *stream,
                   void **parameters, void **extra) {
    ASK(BITS(function), x, y, z, tx, ty, tz, shared, BITS(stream), BITS(parameters), BITS(extra));
}
