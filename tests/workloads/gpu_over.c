/* cc: -shared -fPIC */
/* gpu_over.c - a run-time that is a library over the driver: its one function finds and calls the driver's, with -DBY_GETTER. */
#include "gpu_driver.h"

int cudaMalloc(void **to, size_t bytes)
{
	cu_find();
	return cuMemAlloc_v2((unsigned long *)to, bytes);
}

int gpu_over_books(void) { return gpu_books(); }
