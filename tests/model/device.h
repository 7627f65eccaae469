/*
 * device.h - the model's multiplications on an OpenCL device, if this machine has one.
 */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

bool device_start(char *name, size_t size);     /* false: there is none */
void device_stop(void);

/* out[rows][n] += in[rows][k] * w[k][n]; what: which kernel, "query", "key", "value", "up" or "down". w stays there for good. */
void device_multiply(const char *what, float *out, const float *in, const float *w, size_t rows, size_t k, size_t n);

#endif
