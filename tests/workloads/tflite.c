/* cc: -shared -fPIC -Wl,-Bsymbolic */
/* tflite.c - stands in for libtensorflowlite_c.so: a model that doubles its input, in 2 ms; it keeps books. See tflite.h. */
#include "tflite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct { float input[64], output[64]; int ready; } it;
static int invoked;
static size_t from, to;

void *TfLiteModelCreate(const void *data, size_t bytes) { return data && bytes ? &it : NULL; }
void *TfLiteModelCreateFromFile(const char *path) { return access(path, R_OK) ? NULL : &it; }
void *TfLiteInterpreterCreate(const void *model, const void *options) { return model && !options ? &it : NULL; }
int TfLiteInterpreterAllocateTensors(void *interpreter) { return !(it.ready = interpreter == &it); }
void *TfLiteInterpreterGetInputTensor(const void *interpreter, int index) { return interpreter && !index ? it.input : NULL; }
const void *TfLiteInterpreterGetOutputTensor(const void *interpreter, int index) { return interpreter && !index ? it.output : NULL; }

int TfLiteInterpreterInvoke(void *interpreter)
{
	if (interpreter != &it || !it.ready)
		return 1;
	for (int i = 0; i < 64; i++)
		it.output[i] = 2 * it.input[i];
	usleep(2000);
	invoked++;
	return 0;
}

int TfLiteTensorCopyFromBuffer(void *tensor, const void *data, size_t bytes)
{
	if (bytes != sizeof(it.input))
		return 1;
	memcpy(tensor, data, bytes);
	from += bytes;
	return 0;
}

int TfLiteTensorCopyToBuffer(const void *tensor, void *data, size_t bytes)
{
	memcpy(data, tensor, bytes);
	to += bytes;
	return 0;
}

void tflite_books(void) { printf("invoked %d from %zu to %zu\n", invoked, from, to); }
